package plain

import (
	"fmt"
	"testing"
)

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.com/a?b=c#d":   "https://example.com/a?b=c#d example.com []",
		"https://a@b@example.com:80/":   `https://a@b@example.com:80/ example.com:80 ["a@b" in front of the host is a user's name, and not where it leads.]`,
		"https://\u0430pple.com/login":  `https://xn--pple-43d.com/login xn--pple-43d.com [It was written as "аpple.com", with letters that may look like others.]`,
		"https://%D0%B0pple.com:8080/":  `https://xn--pple-43d.com:8080/ xn--pple-43d.com:8080 [It was written as "аpple.com:8080", with letters that may look like others.]`,
		"https://B\u00dcCHER.example/":  `https://xn--bcher-kva.example/ xn--bcher-kva.example [It was written as "BÜCHER.example", with letters that may look like others.]`,
		"https://bank.com\u3002evil.io": `https://bank.com.evil.io bank.com.evil.io [It was written as "bank.com。evil.io", with letters that may look like others.]`,
		"https://google.com@evil.io/":   `https://google.com@evil.io/ evil.io ["google.com" in front of the host is a user's name, and not where it leads.]`,
		"https://evil.io\\@google.com/": "https://evil.io\\@google.com/  [This address cannot be read: net/url: invalid userinfo.]",
	} {
		text, host, notes := Address(address)
		if got := fmt.Sprintf("%s %s %v", text, host, notes); got != want {
			t.Errorf("%s:\n got %s\nwant %s", address, got, want)
		}
	}
}

// The examples are those of RFC 3492.
func TestPunycode(t *testing.T) {
	for label, want := range map[string]string{
		"\u0644\u064A\u0647\u0645\u0627\u0628\u062A\u0643\u0644\u0645\u0648\u0634\u0639\u0631\u0628\u064A\u061F": "egbpdaj6bu4bxfgehfvwxn",
		"\u4ED6\u4EEC\u4E3A\u4EC0\u4E48\u4E0D\u8BF4\u4E2D\u6587":                                                 "ihqwcrb4cv8a8dqg056pqjye",
		"3\u5E74B\u7D44\u91D1\u516B\u5148\u751F":                                                                 "3B-ww4c5e180e575a65lsy2b",
		"\u3072\u3068\u3064\u5C4B\u6839\u306E\u4E0B2":                                                            "2-u9tlzr9756bt3uc0v",
		"Maji\u3067Koi\u3059\u308B5\u79D2\u524D":                                                                 "MajiKoi5-783gue6qz075azm5e",
	} {
		if got := punycode([]rune(label)); got != want {
			t.Errorf("%s: got %s, want %s", label, got, want)
		}
	}
}
