package translate

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// blockTo1 translates a content block. Version 1 knows five types; of another one it shows what there is.
func blockTo1(block raw) []raw {
	o, ok := parse(orNull(block))
	if !ok {
		return []raw{block}
	}
	switch o.str("type") {
	case "text", "image", "audio", "resource_link", "resource":
	default:
		return []raw{obj("type", "text", "text", compact(block), "_meta", o.get("_meta")).text()}
	}
	if !bytes.Contains(block, []byte(`"audience"`)) {
		return []raw{block}
	}
	notes := o.sub("annotations")
	if audience := notes.get("audience"); audience != nil {
		notes.set("audience", edit(list(audience), func(role raw) []raw {
			if r := unquote(role); r == "user" || r == "assistant" {
				return []raw{role}
			}
			return nil
		}))
		o.set("annotations", notes.text())
	}
	return []raw{o.text()}
}

// blocksTo1 translates a member that is a content block, or a list of them.
func blocksTo1(o *object, name string) {
	if value := o.get(name); len(value) > 0 && value[0] == '[' {
		o.set(name, edit(list(value), blockTo1))
	} else if value != nil {
		o.set(name, blockTo1(value)[0])
	}
}

// The values of version 1 that stand for values that only version 2 has.
var (
	status1 = map[string]string{
		"pending": "pending", "in_progress": "in_progress", "completed": "completed", "failed": "failed",
		"cancelled": "failed", "paused": "pending", "": "in_progress",
	}
	entryStatus1 = map[string]string{
		"pending": "pending", "in_progress": "in_progress", "completed": "completed", "cancelled": "completed", "": "pending",
	}
	priority1 = map[string]string{"high": "high", "medium": "medium", "low": "low", "": "medium"}
	kinds1    = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)

// value1 returns the value of version 1 for one of version 2.
func value1(values map[string]string, value string) raw {
	if v, ok := values[value]; ok {
		return quote(v)
	}
	return quote(values[""])
}

func kind1(kind string) raw {
	if slices.Contains(kinds1, kind) {
		return quote(kind)
	}
	return quote("other")
}

// entriesTo1 translates the entries of a plan.
func entriesTo1(entries []raw) raw {
	return editObjects(entries, func(o *object) bool {
		o.set("priority", value1(priority1, o.str("priority")))
		o.set("status", value1(entryStatus1, o.str("status")))
		return true
	})
}

// commandsTo2 and commandsTo1 translate the commands of a session.
//
// In version 2 their names are unique and have no white space. A command whose name has some is left out of the list;
// the user can still write it.
func commandsTo2(commands []raw) raw {
	names := map[string]bool{}
	return editObjects(commands, func(o *object) bool {
		name := o.str("name")
		if names[name] || strings.ContainsFunc(name, unicode.IsSpace) {
			return false
		}
		names[name] = true
		*o = obj("type", "command").and(*o)
		if input := o.sub("input"); input != nil {
			o.set("input", obj("type", "text").and(input).text())
		}
		return true
	})
}

func commandsTo1(commands []raw) raw {
	return editObjects(commands, func(o *object) bool {
		if o.str("type") != "command" {
			return false
		}
		o.drop("type")
		if input := o.sub("input"); input.str("type") == "text" {
			input.drop("type")
			o.set("input", input.text())
		} else {
			o.drop("input")
		}
		return true
	})
}

func orNull(text raw) raw {
	if text == nil {
		return null
	}
	return text
}

func boolean(b bool) raw {
	if b {
		return yes
	}
	return no
}
