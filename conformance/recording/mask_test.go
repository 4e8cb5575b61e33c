package recording

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

var anyMask = regexp.MustCompile(`masked-[0-9a-f]{10}`)

// Each secret is replaced, and nothing else. In each line of testdata/masks.txt, {} is a secret.
func TestMask(t *testing.T) {
	const s = "s3cr3t-Value-0123456789"
	for text := range strings.Lines(string(must.Get(os.ReadFile("testdata/masks.txt"))(t))) {
		if strings.HasPrefix(text, "#") {
			continue
		}
		name, line, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		if !ok {
			t.Fatalf("%q is not a case", text)
		}
		t.Run(name, func(t *testing.T) {
			secret := strings.ReplaceAll(line, "{}", s)
			m := NewMasker()
			got := string(m.Mask([]byte(secret)))
			want := strings.ReplaceAll(line, "{}", m.mask([]byte(s)))
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if again := string(m.Mask([]byte(got))); again != got {
				t.Errorf("masked twice: %s", again)
			}
			if other := string(NewMasker().Mask([]byte(secret))); strings.Contains(line, "{}") && other == got {
				t.Error("another masker has the same masks")
			}
		})
	}
}

// Keys are recognized by their shape, wherever they occur.
func TestMaskShapes(t *testing.T) {
	for _, key := range []string{
		"sk-abcdefghijklmnopqrstuvwx", "sk-ant-api03-abcdefghijklmnop_qrstuv-AA", "sk-proj-abcdefghijklmnopqrstuvwx", "sk_live_abcdefghijklmnopqrst",
		"ghp_abcdefghijklmnopqrstuvwxyz0123456789", "github_pat_11ABCDEFG0abcdefghij_klmnop", "glpat-abcdefghijklmnopqrst",
		"npm_abcdefghijklmnopqrstuvwxyz0123456789", "hf_abcdefghijklmnopqrstuvwxyz", "AKIAIOSFODNN7EXAMPLE", "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
		"xoxb-1234567890-abcdefghijkl", "ya29.abcdefghijklmnopqrstuvwxyz", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF_-123",
		"SG.abcdefghijklmnopqrst.uvwxyzabcdefghijklmnop", "xai-abcdefghijklmnopqrstuvwx", "gsk_abcdefghijklmnopqrstuvwx",
	} {
		for _, form := range []string{`{"params":{"text":"%"}}`, `{"params":{"text":"a\n%\tb"}}`, `{"params":{"text":"\u00e4 (%), \"%\""}}`, `say % once`, `{"result":["%"]}`, `["%"]`} {
			m := NewMasker()
			line := strings.ReplaceAll(form, "%", key)
			if got, want := string(m.Mask([]byte(line))), strings.ReplaceAll(form, "%", m.mask([]byte(key))); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
	m := NewMasker()
	pem := `{"params":{"text":"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----\n"}}`
	if got := string(m.Mask([]byte(pem))); strings.Contains(got, "MIIEow") || strings.Contains(got, "abc") || !strings.HasSuffix(got, `-----END RSA PRIVATE KEY-----\n"}}`) {
		t.Errorf("got %s", got)
	}
}

// Secrets in commands, files and prose are found by what surrounds them. In each line of testdata/secrets.txt, braces
// enclose the secret.
func TestMaskTexts(t *testing.T) {
	texts := must.Get(os.ReadFile("testdata/secrets.txt"))(t)
	for line := range strings.Lines(string(texts)) {
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' {
			continue
		}
		text = strings.ReplaceAll(text, `\n`, "\n")
		from, to := strings.Index(text, "{{"), strings.LastIndex(text, "}}")
		plain, secret := text, ""
		if from >= 0 {
			secret = text[from+2 : to]
			plain = text[:from] + secret + text[to+2:]
		}
		inJSON := must.Get(json.Marshal(map[string]string{"text": plain}))(t)
		m := NewMasker()
		var got map[string]string
		if err := json.Unmarshal(m.Mask(inJSON), &got); err != nil {
			t.Errorf("%q: %v", plain, err)
		}
		want := plain
		if secret != "" {
			want = text[:from] + m.mask([]byte(secret)) + text[to+2:]
		}
		if got["text"] != want {
			t.Errorf("got  %q\nwant %q", got["text"], want)
		}
		if direct := string(m.Mask([]byte(plain))); direct != want && plain[0] != '{' {
			t.Errorf("outside of JSON: got %q, want %q", direct, want)
		}
	}
}

// A secret may be in several chunks of a message, which other messages interrupt.
func TestMaskChunks(t *testing.T) {
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEhunter2hunter2\n", 40) + "-----END PRIVATE KEY-----\nthat is it"
	for name, test := range map[string]struct {
		pieces []string
		secret string
	}{
		"a known form":        {[]string{"It is sk-ant-api03-hun", "ter2hunter2", "hunter2. Fine"}, "hunter2"},
		"a known beginning":   {[]string{"ghp_hunter2hu", "nter2hunter2hunter2abc"}, "hunter2"},
		"an assignment":       {[]string{"run PGPASSWORD=hun", "ter2secret psql"}, "hunter2"},
		"in the name":         {[]string{"run PGPASS", "WORD=hunter2secret psql"}, "hunter2"},
		"between both":        {[]string{"password: ", "hunter2secret\n"}, "hunter2"},
		"a private key":       {[]string{pem[:20], pem[20:100], pem[100:400], pem[400 : len(pem)-20], pem[len(pem)-20:]}, "hunter2"},
		"a URL":               {[]string{"see https://me:hun", "ter2@example.org/x"}, "hunter2"},
		"a URL, in 3 parts":   {[]string{"see postgres://me:hunt", "er", "2@example.org/x"}, "hunter2"},
		"a port":              {[]string{"see http://localhost:80", "80/x and https://exam", "ple.org/", "x"}, ""},
		"a key, in 3 parts":   {[]string{"It is glsa_hunt", "er2hunt", "er2hunter2hunter2aaa. Fine"}, "hunter2"},
		"a header":            {[]string{"Authorization: Bearer hunt", "er2h", "unter2hunter2"}, "hunter2"},
		"nothing, in 3 parts": {[]string{"The pass", "word: must have ", "8 characters, risk-", "free"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMasker()
			whole, clear := "", strings.Join(test.pieces, "")
			for _, piece := range test.pieces {
				text := must.Get(json.Marshal(piece))(t)
				line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(text) + `}}}}`
				m.Mask([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x "}}}}`))
				var got struct {
					Params struct {
						Update struct{ Content struct{ Text string } }
					}
				}
				must.Do(t, json.Unmarshal(m.Mask([]byte(line)), &got))
				whole += got.Params.Update.Content.Text
			}
			if test.secret == "" {
				if whole != clear {
					t.Errorf("got %q", whole)
				}
				return
			}
			for _, part := range []string{"hunt", "unter", "nter2", "er2"} {
				if strings.Contains(whole, part) {
					t.Errorf("%q shows %q", whole, part)
				}
			}
		})
	}
}

// A mask is the same for the same secret, however it is written.
func TestMaskIsTheSame(t *testing.T) {
	m := NewMasker()
	masks := anyMask.FindAllString(string(m.Mask([]byte(`{"env":{"A":"caf\u00e9\/\ud83d\ude00","B":"café/😀","C":"other"}}`))), -1)
	if len(masks) != 3 || masks[0] != masks[1] || masks[0] == masks[2] {
		t.Errorf("got %q", masks)
	}
	if got := m.Args([]string{"agent", "--token", "abc", "--key-file", "x"}); got[2] != m.mask([]byte("abc")) || got[0] != "agent" || got[4] != "x" {
		t.Errorf("got %q", got)
	}
	if got := m.Args([]string{"curl", "-u", "me:hunter2", "https://x"}); got[2] != "me:"+m.mask([]byte("hunter2")) || got[3] != "https://x" {
		t.Errorf("got %q", got)
	}
}

// For any line, the masked message has the same shape, and masking does not change its argument.
func FuzzMask(f *testing.F) {
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"x_chunk","content":{"text":"password=\u00e4\\b1"}}}}`))
	f.Add([]byte(`{"command":"curl\u0020","args":["-u","\ud83d\ude00:p\"w1"]}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"env":[{"name":"A","value":"b\n\ud83d\ude00"}],"url":"http://a:b@c/?token=d"}}`))
	f.Add([]byte(`{"text":"\u0026token=x\\"}`))
	f.Add([]byte("Bearer 12345678901234567890\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := string(line)
		got := NewMasker().Mask(line)
		if string(line) != before {
			t.Fatal("the line was changed")
		}
		var a, b any
		if json.Unmarshal(line, &a) != nil {
			return
		}
		if err := json.Unmarshal(got, &b); err != nil {
			t.Fatalf("%q became %q: %v", line, got, err)
		}
		if !reflect.DeepEqual(shapeOf(a), shapeOf(b)) {
			t.Fatalf("%q became %q", line, got)
		}
	})
}

// shapeOf returns a value without its texts.
func shapeOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = shapeOf(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = shapeOf(e)
		}
		return out
	case string:
		return v != ""
	}
	return v
}
