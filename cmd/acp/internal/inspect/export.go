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
		return s.reading(func(all *io.SectionReader) error {
			_, err := io.Copy(w, all)
			return err
		})
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
		if err := s.reading(func(all *io.SectionReader) error { return s.search(ctx, all, wanted, result) }); err != nil {
			return nil, err
		}
	}
	return result, ctx.Err()
}

// search adds the rows of a source, until there are too many.
func (s *source) search(ctx context.Context, recording io.Reader, wanted []byte, result *found) error {
	s.mu.Lock()
	offsets := s.offsets[:len(s.offsets):len(s.offsets)]
	s.mu.Unlock()
	lines := bufio.NewReaderSize(recording, 1<<20)
	at, n := int64(0), 0
	for ctx.Err() == nil && !result.More {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for n < len(offsets) && offsets[n] < at {
			n++
		}
		if n < len(offsets) && offsets[n] == at {
			if raw, err := spooled(line); err == nil && bytes.Contains(bytes.ToLower(raw), wanted) {
				if result.More = len(result.Rows) == maxFound; !result.More {
					result.Rows = append(result.Rows, foundRow{s.id, n + 1})
				}
			}
		}
		at += int64(len(line))
	}
	return nil
}
