"""What an operator tells about itself: `logging` for lines on stderr."""
