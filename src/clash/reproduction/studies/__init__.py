"""The papers' experiments on anyone's votes."""
