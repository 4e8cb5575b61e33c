package inspect

import (
	"bufio"
	"bytes"
	"context"
	"io"
)

// export is a file that a page can download.
type export struct {
	file, contentType string
	write             func(in *Inspection, s *source, w io.Writer) error
}

var exports = map[string]export{
	"recording": {"recording.jsonl", "application/jsonl", func(_ *Inspection, s *source, w io.Writer) error {
		_, err := io.Copy(w, s.recording())
		return err
	}},
	"html": {"acp-report.html", "text/html; charset=utf-8", func(in *Inspection, s *source, w io.Writer) error {
		return in.writeReport(w, s)
	}},
}

// maxFound bounds the rows that a search returns.
const maxFound = 1000

// search finds the rows whose line contains a text, without regard to case.
func (in *Inspection) search(ctx context.Context, text string) (*found, error) {
	result := &found{Rows: []foundRow{}}
	if text == "" {
		return result, nil
	}
	wanted := bytes.ToLower([]byte(text))
	for _, s := range in.all() {
		s.mu.Lock()
		offsets := s.offsets[:len(s.offsets):len(s.offsets)]
		s.mu.Unlock()
		lines := bufio.NewReaderSize(s.recording(), 1<<20)
		at := int64(0)
		n := 0
		for ctx.Err() == nil {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			for n < len(offsets) && offsets[n] < at {
				n++
			}
			if n < len(offsets) && offsets[n] == at {
				if raw, err := spooled(line); err == nil && bytes.Contains(bytes.ToLower(raw), wanted) {
					if len(result.Rows) == maxFound {
						result.More = true
						return result, nil
					}
					result.Rows = append(result.Rows, foundRow{s.id, n + 1})
				}
			}
			at += int64(len(line))
		}
	}
	return result, ctx.Err()
}
