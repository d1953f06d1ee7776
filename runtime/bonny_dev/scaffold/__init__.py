"""Scaffold: what an operator repository is made of: its layout (`project`) and the templates of the generators."""
