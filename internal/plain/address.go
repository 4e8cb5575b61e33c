package plain

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// Address returns a URL in a form to show to users, who decide by it whether to open it: its host is the one that is
// looked up, in punycode, because letters of one script look like those of another. notes say, one per line, what else
// may mislead: what the host looked like, and a user name before it. host is empty if the URL cannot be parsed. The
// texts come from the author of the URL, and must still be made safe for a terminal.
func Address(address string) (text, host string, notes []string) {
	u, err := url.Parse(address)
	if err != nil {
		if wrong, ok := errors.AsType[*url.Error](err); ok {
			err = wrong.Err // the URL itself is left out
		}
		return address, "", []string{fmt.Sprintf("This address cannot be read: %v.", err)}
	}
	if u.User != nil {
		notes = append(notes, fmt.Sprintf("%q in front of the host is a user's name, and not where it leads.",
			u.User.Username()))
	}
	written := u.Host
	if u.Host = asciiHost(u.Host); u.Host == written {
		return address, u.Host, notes
	}
	return u.String(), u.Host, append(notes, fmt.Sprintf("It was written as %q, with letters that may look like others.",
		written))
}

// asciiHost returns a host, with its port, in lower case and with labels that are not ASCII in punycode.
func asciiHost(host string) string {
	if ascii(host) {
		return host
	}
	host, port, hasPort := strings.Cut(host, ":")
	labels := strings.Split(strings.Map(func(r rune) rune {
		switch {
		case r == '\u3002', r == '\uff61': // browsers treat them as dots
			return '.'
		case r > '\uff00' && r <= '\uff5e': // the full-width forms of ASCII
			r -= '\uff00' - ' '
		}
		return unicode.ToLower(r)
	}, host), ".")
	for i, label := range labels {
		if !ascii(label) {
			labels[i] = "xn--" + punycode([]rune(label))
		}
	}
	host = strings.Join(labels, ".")
	if hasPort {
		host += ":" + port
	}
	return host
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// punycode encodes a label according to RFC 3492.
func punycode(label []rune) string {
	const base, tmin, tmax, skew, damp, initialBias, initialN = 36, 1, 26, 38, 700, 72, 128
	var out []byte
	for _, r := range label {
		if r < initialN {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias, done := rune(initialN), 0, initialBias, basic
	for ; done < len(label); n, delta = n+1, delta+1 {
		next := rune(unicode.MaxRune)
		for _, r := range label {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q, k := delta, base
			for ; ; k += base {
				t := min(max(k-bias, tmin), tmax)
				if q < t {
					break
				}
				out = append(out, digit(t+(q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			out = append(out, digit(q))
			if done == basic {
				delta /= damp
			} else {
				delta /= 2
			}
			done++
			delta += delta / done
			for bias = 0; delta > (base-tmin)*tmax/2; bias += base {
				delta /= base - tmin
			}
			bias, delta = bias+(base-tmin+1)*delta/(delta+skew), 0
		}
	}
	return string(out)
}

// digit returns a digit of punycode.
func digit(d int) byte {
	if d < 26 {
		return 'a' + byte(d)
	}
	return '0' + byte(d-26)
}
