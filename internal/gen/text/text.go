// Package text makes untrusted text safe. All text from a schema, a file of overrides or the command line passes
// through it before it reaches a place where it could be misinterpreted: the comments and literals of Go source,
// Markdown, and terminals. Text that this package returns cannot end the line or literal that contains it, or change
// how the rest is displayed.
//
// String literals in Go source are written by strconv.Quote, which has the same effect.
package text

import (
	"go/token"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as a part of one line in which every character is visible. White space of any kind becomes a space.
// Other invisible characters are escaped as in a Go string: control characters, characters that change the direction of
// the text, zero-width characters, the byte order mark, and bytes that are not UTF-8.
func Line(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// longest is the maximum length in bytes of a text that Brief does not cut.
const longest = 2000

// Brief is like Line, but returns only the beginning and the end of a long text.
func Brief(s string) string {
	if len(s) <= longest {
		return Line(s)
	}
	head, tail := longest/2, len(s)-longest/2
	for range utf8.UTFMax - 1 {
		if !utf8.RuneStart(s[head]) {
			head--
		}
		if !utf8.RuneStart(s[tail]) {
			tail++
		}
	}
	return Line(s[:head]) + " … " + Line(s[tail:])
}

// Comment returns s as a one-line Go comment. The comment is not a directive, because directives have no space at their
// beginning. One form of build constraint does have that space. It is escaped, because gofmt turns it into a real
// constraint wherever it is.
func Comment(s string) string {
	s = strings.TrimRight(Line(s), " ")
	if s == "" {
		return "//"
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(s, " "), "+build"); ok {
		s = `\u002bbuild` + rest
	}
	return "// " + s
}

// Code returns s as code within a line of Markdown, or "" if s is empty.
func Code(s string) string {
	if s == "" {
		return ""
	}
	s = Line(s)
	longest, run := 0, 0
	for i := range len(s) {
		if run++; s[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 || s[0] == ' ' && s[len(s)-1] == ' ' && strings.Trim(s, " ") != "" {
		s = " " + s + " "
	}
	return fence + s + fence
}

// Markdown returns s as plain text within a line of Markdown.
func Markdown(s string) string {
	s = Line(s)
	var b strings.Builder
	for i, r := range s {
		switch r {
		case '_', '~', '|':
			if !inWord(s, i) {
				b.WriteByte('\\')
			}
		case '\\', '`', '*', '[', ']', '<', '>', '&':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// inWord reports whether there are letters or digits on both sides of byte i.
func inWord(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+1:])
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return word(before) && word(after)
}

// IsPackage reports whether s can be the name of a package.
func IsPackage(s string) bool { return token.IsIdentifier(s) && s != "_" && s != "init" }

// IsImportPath reports whether s can be the import path of a package.
func IsImportPath(s string) bool {
	return s != "" && s != "C" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || r == ' ' || r == utf8.RuneError ||
			strings.ContainsRune("!\"#$%&'()*,:;<=>?[\\]^`{|}", r)
	})
}

// IsExported reports whether s is an identifier that other packages can use.
func IsExported(s string) bool { return token.IsIdentifier(s) && token.IsExported(s) }
