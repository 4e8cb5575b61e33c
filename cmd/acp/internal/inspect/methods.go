package inspect

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// methodsOf lists the methods of a schema by their names: its definitions with x-method and x-side, the side that
// serves it, which join params with results. A method without a result is a notification. A method that both sides
// serve is listed for each. Those between proxies are left out.
func methodsOf(text string, version int) []methodInfo {
	var schema struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
			Side   string `json:"x-side"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		panic(err) // the schema is embedded
	}
	type key struct {
		serves, method string
		notification   bool
	}
	all := map[key]*methodInfo{}
	for name, one := range schema.Defs {
		for serves, sender := range map[string]string{"client": "agent", "agent": "client"} {
			if one.Method == "" || one.Side != serves && one.Side != "protocol" {
				continue
			}
			k := key{serves, one.Method, strings.HasSuffix(name, "Notification")}
			if all[k] == nil {
				all[k] = &methodInfo{Method: one.Method, Version: version, Side: sender}
			}
			if strings.HasSuffix(name, "Response") {
				all[k].Result = name
			} else {
				all[k].Params = name
			}
		}
	}
	var list []methodInfo
	for _, m := range slices.SortedFunc(maps.Values(all), func(a, b *methodInfo) int {
		return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Params, b.Params))
	}) {
		list = append(list, *m)
	}
	return list
}
