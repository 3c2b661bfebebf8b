"""Style robustness: copies of candidates in another style, and what each method makes of them."""
