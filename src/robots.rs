//! What a robots.txt answer means for us (RFC 9309).
