package plain

import "unicode/utf8"

// Unfinished returns how many bytes at the end of text are the beginning of a character whose other bytes are missing.
func Unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
