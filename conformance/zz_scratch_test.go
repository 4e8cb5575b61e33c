package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScratch(t *testing.T) {
	var files []string
	for _, g := range strings.Fields(os.Getenv("SCRATCH")) {
		m, _ := filepath.Glob(g)
		files = append(files, m...)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		j := NewJudge(nil, nil)
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<26)
		show := func(fs []Finding) {
			for _, x := range fs {
				if p := os.Getenv("ONLY"); p != "" && !strings.Contains(p, strings.SplitN(x.Rule+"-", "-", 2)[0]) {
					continue
				}
				fmt.Println(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name), x.Number, x.String())
			}
		}
		for sc.Scan() {
			var l struct{ From, Raw string }
			if json.Unmarshal(sc.Bytes(), &l) != nil || l.From == "" {
				continue
			}
			d := ToAgent
			if l.From == "agent" {
				d = ToClient
			}
			show(j.Message(Message{Direction: d, Line: []byte(l.Raw)}))
		}
		show(j.End())
		f.Close()
	}
}
