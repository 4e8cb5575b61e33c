package registry

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// iconSize is the required width and height.
const iconSize = 16

// paints are the attributes and properties that hold a color.
var paints = []string{"fill", "stroke", "color", "stop-color", "flood-color", "lighting-color"}

// declaration matches a declaration of a style.
var declaration = regexp.MustCompile(`([a-zA-Z-]+)\s*:\s*([^;}]+)`)

func (c *checker) icon() {
	if c.dir == "" {
		c.why("REG-9", "there is no folder")
		c.step.Skipped = "there is no folder"
		return
	}
	text, err := readFile(filepath.Join(c.dir, "icon.svg"), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		c.why("REG-9", "there is no icon.svg")
		c.step.Skipped = "there is no icon.svg"
		return
	}
	c.ran("REG-9")
	if err != nil {
		c.fail("REG-9", "", "icon.svg: %v", err)
		return
	}
	seen := map[string]bool{}
	fail := func(format string, args ...any) {
		// A color that is used a hundred times is reported only once.
		if text := fmt.Sprintf(format, args...); !seen[text] {
			seen[text] = true
			c.fail("REG-9", "", "%s", text)
		}
	}
	paint := func(name, value string) {
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		if slices.Contains(paints, name) && !slices.Contains([]string{"currentColor", "currentcolor", "none", "inherit"},
			value) {
			fail("%s is %q, and not currentColor, none or inherit", name, value)
		}
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	root, style := true, false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fail("icon.svg is no XML: %v", err)
			return
		}
		switch t := token.(type) {
		case xml.Comment:
			fail("it has a comment")
		case xml.StartElement:
			if root {
				if t.Name.Local != "svg" {
					fail("icon.svg is no SVG, but %s", t.Name.Local)
					return
				}
				if why := wrongSize(t.Attr); why != "" {
					fail("%s", why)
				}
				root = false
			}
			style = t.Name.Local == "style"
			for _, a := range t.Attr {
				if a.Name.Local == "style" {
					for _, m := range declaration.FindAllStringSubmatch(a.Value, -1) {
						paint(m[1], m[2])
					}
					continue
				}
				paint(a.Name.Local, a.Value)
			}
		case xml.EndElement:
			style = false
		case xml.CharData:
			if style {
				for _, m := range declaration.FindAllStringSubmatch(string(t), -1) {
					paint(m[1], m[2])
				}
			}
		}
	}
	if root {
		fail("icon.svg is empty")
	}
}

// wrongSize describes what is wrong with the size of an SVG.
func wrongSize(attributes []xml.Attr) string {
	value := map[string]string{}
	for _, a := range attributes {
		value[a.Name.Local] = strings.TrimSpace(a.Value)
	}
	number := func(text string) (float64, bool) {
		n, err := strconv.ParseFloat(strings.TrimSuffix(text, "px"), 64)
		return n, err == nil
	}
	for _, name := range []string{"width", "height"} {
		if text, ok := value[name]; ok {
			if n, ok := number(text); !ok || n != iconSize {
				return name + " is " + strconv.Quote(text) + ", and not 16"
			}
		}
	}
	box, ok := value["viewBox"]
	if !ok {
		if value["width"] == "" || value["height"] == "" {
			return "it has no size: width and height, or viewBox"
		}
		return ""
	}
	parts := strings.FieldsFunc(box, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' })
	if len(parts) == 4 {
		w, wok := number(parts[2])
		h, hok := number(parts[3])
		sized := value["width"] != "" && value["height"] != ""
		if wok && hok && w == h && w > 0 && (w == iconSize || sized) {
			return ""
		}
	}
	return "viewBox is " + strconv.Quote(box) + ", and not 0 0 16 16"
}
