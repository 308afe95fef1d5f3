"""Networks from a real value of a pair, such as a resistance, to a bias."""
