// Package titles makes the titles of sessions. It does not ask a model for them.
package titles

import "strings"

// FirstWords makes a title of a text: its first words on one line. "" is none.
func FirstWords(text string) string {
	const longest, enough = 60, 1000
	text = strings.ToValidUTF8(text[:min(len(text), enough)], "")
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		runes = append(runes[:longest-1], '…')
	}
	return string(runes)
}

// Shortened keeps a title within what a store of sessions takes.
func Shortened(title string) string {
	const longest = 1000
	title = strings.ReplaceAll(strings.ToValidUTF8(title, ""), "\x00", "")
	if len(title) <= longest {
		return title
	}
	return strings.ToValidUTF8(title[:longest], "") + "…"
}
