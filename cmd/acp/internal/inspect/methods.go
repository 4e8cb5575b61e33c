package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// definitions are the definitions of a schema, in its order.
type definitions []definition

type definition struct {
	name   string
	Method string `json:"x-method"`
	Side   string `json:"x-side"` // that serves the method
}

// UnmarshalJSON keeps the order.
func (d *definitions) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var one definition
		if err := decoder.Decode(&one); err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		one.name = name.(string)
		*d = append(*d, one)
	}
	return nil
}

// methods joins the definitions of params with those of results. A method without a result is a notification. A method
// that both sides serve is listed for each. Those between proxies are left out.
func (d definitions) methods(version int) []methodInfo {
	var list []methodInfo
	at := map[string]int{}
	for _, one := range d {
		if one.Method == "" {
			continue
		}
		for _, serves := range []string{"client", "agent"} {
			if one.Side != serves && one.Side != "protocol" {
				continue
			}
			sender := map[string]string{"client": "agent", "agent": "client"}[serves]
			notification := strings.HasSuffix(one.name, "Notification")
			key := fmt.Sprintln(serves, one.Method, notification)
			i, ok := at[key]
			if !ok {
				i = len(list)
				at[key] = i
				list = append(list, methodInfo{Method: one.Method, Version: version, Side: sender})
			}
			if strings.HasSuffix(one.name, "Response") {
				list[i].Result = one.name
			} else {
				list[i].Params = one.name
			}
		}
	}
	return list
}
