package turns

import (
	"strings"

	"github.com/acpgo/sdk/acp"
)

// FirstWords makes a title from a prompt: the first words of its texts, on one line. It is "" if the prompt has no
// text.
func FirstWords(prompt []acp.ContentBlock) string {
	const longest, enough = 60, 1000
	var all strings.Builder
	for _, block := range prompt {
		text := block.Text()
		all.WriteString(" " + text[:min(len(text), enough)])
		if all.Len() > enough {
			break
		}
	}
	text := all.String()
	text = strings.ToValidUTF8(text[:min(len(text), enough)], "")
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		runes = append(runes[:longest-1], '…')
	}
	return string(runes)
}

// Shortened cuts a title to the length that session stores accept.
func Shortened(title string) string {
	const longest = 1000
	title = strings.ReplaceAll(strings.ToValidUTF8(title, ""), "\x00", "")
	if len(title) <= longest {
		return title
	}
	return strings.ToValidUTF8(title[:longest], "") + "…"
}
