"""The paper behind consistruct, reproduced: its claims, figures and simulations; see README.md."""
