"""Ways in: facts about operators of other frameworks: their traces on objects, and the handlers in their code."""
