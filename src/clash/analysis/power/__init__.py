"""How many items a question needs: from assumptions, from a pilot, and as published."""
