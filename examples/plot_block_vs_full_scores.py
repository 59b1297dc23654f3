"""
Block scores against full scores
================================

x
"""
import matplotlib.pyplot as plt
plt.plot([1,2])
print("x")
