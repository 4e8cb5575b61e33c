package inspect

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The limits for finding the components of a chain.
const (
	maxChainLines = 10_000
	maxChainLine  = 1 << 20 // bytes
)

// chainOf returns the components of a conductor's trace in their order, from "client" on; none for another file. It
// reads the beginning of the file.
func chainOf(from io.Reader) ([]string, error) {
	var proxies []int
	last := ""
	lines := bufio.NewReaderSize(from, maxChainLine)
	for range maxChainLines {
		line, err := lines.ReadSlice('\n')
		if err != nil && err != io.EOF {
			if err == bufio.ErrBufferFull {
				break
			}
			return nil, err
		}
		var event struct {
			Type string  `json:"type"`
			TS   float64 `json:"ts"`
			From string  `json:"from"`
			To   string  `json:"to"`
		}
		if json.Unmarshal(line, &event) == nil && event.Type != "" {
			for _, name := range []string{event.From, event.To} {
				if number, ok := strings.CutPrefix(name, "proxy:"); ok {
					if n, err := strconv.Atoi(number); err == nil && n >= 0 && !slices.Contains(proxies, n) && len(proxies) < 100 {
						proxies = append(proxies, n)
					}
				} else if name == "agent" || name == "successor" {
					last = name
				}
			}
		}
		if err == io.EOF {
			break
		}
	}
	if len(proxies) == 0 {
		return nil, nil
	}
	slices.Sort(proxies)
	chain := []string{"client"}
	for _, n := range proxies {
		chain = append(chain, "proxy:"+strconv.Itoa(n))
	}
	if last != "" {
		chain = append(chain, last)
	}
	return chain, nil
}
