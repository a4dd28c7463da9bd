class TextPrompt(dict): ...


class TokensPrompt(dict): ...


MultiModalDataDict = dict
