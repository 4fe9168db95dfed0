"""Files of any size: translate, score and generate text, resumably."""
