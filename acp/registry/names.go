package registry

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/plain"
)

// Bounds of names: the lowest of all systems.
const (
	maxElement = 255
	maxName    = 1024
	maxDepth   = 64
)

// windowsName returns the reason why a part of a name is not valid on Windows, means something else there, or looks
// different; "" if it is valid.
func windowsName(element string) string {
	if len(element) > maxElement {
		return "the name is too long"
	}
	if !utf8.ValidString(element) {
		return "the name is no UTF-8"
	}
	for _, r := range element {
		if plain.Unseen(r) || strings.ContainsRune(`<>:"|?*\`, r) {
			return fmt.Sprintf("the name has %q", r)
		}
	}
	if strings.HasSuffix(element, ".") || strings.HasSuffix(element, " ") {
		return "the name ends with a dot or a space"
	}
	base, _, _ := strings.Cut(element, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return "it is the name of a Windows device"
	}
	if port, ok := strings.CutPrefix(base, "COM"); ok || strings.HasPrefix(base, "LPT") {
		if !ok {
			port = base[len("LPT"):]
		}
		if utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port) {
			return "it is the name of a Windows device"
		}
	}
	return ""
}
