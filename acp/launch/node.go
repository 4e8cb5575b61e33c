package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// engine returns the version of Node.js that a script's package requires, or "" if it does not say.
func engine(script string) string {
	script, err := filepath.EvalSymlinks(script)
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(script); ; dir = filepath.Dir(dir) {
		text, err := readRegular(filepath.Join(dir, "package.json"))
		if err == nil {
			var pkg struct {
				Name    string
				Engines struct{ Node string }
			}
			// Directories within a package may have a package.json that only sets the type of their files.
			if json.Unmarshal(text, &pkg) == nil && (pkg.Name != "" || pkg.Engines.Node != "") {
				return pkg.Engines.Node
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if filepath.Dir(dir) == dir {
			return ""
		}
	}
}

// maxPackage bounds package.json, in bytes.
const maxPackage = 1 << 20

// readRegular reads a regular file. It refuses pipes, devices and files that are too long.
func readRegular(name string) ([]byte, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > maxPackage {
		return nil, fmt.Errorf("%s is not a regular file, or is too large", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxPackage))
}

// version is a version of three numbers. A prerelease counts as its release.
type version [3]int

// parseVersion reads up to three numbers, and returns how many there were.
func parseVersion(text string) (v version, parts int, ok bool) {
	text = strings.TrimLeft(strings.TrimSpace(text), "v=")
	text, _, _ = strings.Cut(text, "-")
	text, _, _ = strings.Cut(text, "+")
	for i, part := range strings.Split(text, ".") {
		if part == "x" || part == "X" || part == "*" {
			break
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || i >= len(v) {
			return v, 0, false
		}
		v[i], parts = n, i+1
	}
	return v, parts, true
}

func (v version) compare(o version) int {
	for i := range v {
		if v[i] != o[i] {
			return v[i] - o[i]
		}
	}
	return 0
}

// next returns the first version after all those that match the given parts.
func (v version) next(parts int) version {
	switch parts {
	case 1:
		return version{v[0] + 1}
	case 2:
		return version{v[0], v[1] + 1}
	}
	return version{v[0], v[1], v[2] + 1}
}

// inRange reports whether a version is in a range in the syntax of package.json, such as "^20.19 || >=22.12". known is
// false if the range or the version is not understood.
func inRange(text, wanted string) (in, known bool) {
	v, parts, ok := parseVersion(text)
	if !ok || parts == 0 {
		return false, false
	}
	for alternative := range strings.SplitSeq(wanted, "||") {
		all, ok := inAll(v, alternative)
		if !ok {
			return false, false
		}
		in = in || all
	}
	return in, true
}

// inAll reports whether a version satisfies all of several comparisons.
func inAll(v version, text string) (in, known bool) {
	if from, to, ok := strings.Cut(text, " - "); ok {
		text = ">=" + strings.TrimSpace(from) + " <=" + strings.TrimSpace(to)
	}
	for _, operator := range []string{">=", "<=", ">", "<", "^", "~", "="} { // spaces after an operator
		text = strings.ReplaceAll(text, operator+" ", operator)
	}
	in = true
	for word := range strings.FieldsSeq(text) {
		digits := strings.TrimLeft(word, "<>=^~")
		operator := word[:len(word)-len(digits)]
		bound, parts, ok := parseVersion(digits)
		if !ok {
			return false, false
		}
		from, before := bound, bound.next(parts) // the versions that match the bound
		switch {
		case parts == 0: // any version
			continue
		case operator == ">=":
			in = in && v.compare(from) >= 0
			continue
		case operator == ">":
			in = in && v.compare(before) >= 0
			continue
		case operator == "<":
			in = in && v.compare(from) < 0
			continue
		case operator == "<=":
			in = in && v.compare(before) < 0
			continue
		case operator == "^":
			before = bound.next(1)
			if bound[0] == 0 && parts > 1 {
				before = bound.next(2)
				if bound[1] == 0 && parts > 2 {
					before = bound.next(3)
				}
			}
		case operator == "~":
			before = bound.next(min(parts, 2))
		case operator != "" && operator != "=":
			return false, false
		}
		in = in && v.compare(from) >= 0 && v.compare(before) < 0
	}
	return in, true
}
