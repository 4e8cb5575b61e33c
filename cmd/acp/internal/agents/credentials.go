package agents

// The credentials that are sent with every request to an agent at a URL. None of them is ever given on a command line,
// which other users can see.

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/internal/secretfile"
)

// Credentials say where a token and headers are. They are read for each request, so that they may change.
type Credentials struct {
	// TokenFile is a file with a token. If it is empty, TokenEnv is the environment variable that has the token.
	TokenFile, TokenEnv string
	// HeaderFile is a file of headers, one per line.
	HeaderFile string
	// HeaderEnv lists headers whose values are in environment variables, as NAME=VARIABLE.
	HeaderEnv []string
}

// maxSecrets is the maximum size of a file of tokens or headers in bytes.
const maxSecrets = 1 << 20

// Check checks the credentials. It reads neither files nor variables.
func (c *Credentials) Check() error {
	for _, pair := range c.HeaderEnv {
		if name, variable, ok := strings.Cut(pair, "="); !ok || name == "" || variable == "" {
			return fmt.Errorf("header-env %q: expected NAME=VARIABLE", pair)
		}
	}
	return nil
}

// Header returns the headers to send with a request.
func (c *Credentials) Header() (http.Header, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	header := http.Header{}
	if c.HeaderFile != "" {
		text, err := readSecrets(c.HeaderFile)
		if err != nil {
			return nil, err
		}
		n := 0
		for line := range strings.Lines(withoutMark(text)) {
			n++
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("%s:%d: expected NAME: VALUE", c.HeaderFile, n) // the line may contain a secret
			}
			header.Add(textproto.TrimString(name), textproto.TrimString(value))
		}
	}
	for _, pair := range c.HeaderEnv {
		name, variable, _ := strings.Cut(pair, "=")
		value, set := os.LookupEnv(variable)
		if !set {
			return nil, fmt.Errorf("header-env %s: $%s is not set", name, variable)
		}
		header.Set(name, strings.TrimSpace(value))
	}
	tokens, err := Tokens(c.TokenFile, c.TokenEnv)
	if err != nil {
		return nil, err
	}
	if len(tokens) > 1 {
		return nil, errors.New("expected one token")
	}
	for _, token := range tokens {
		header.Set("Authorization", "Bearer "+token)
	}
	return header, nil
}

// Tokens returns the tokens of a file by their names, or the token of a variable if there is no file; none if there is
// neither.
func Tokens(file, variable string) (map[string]string, error) {
	if file == "" {
		value := os.Getenv(variable)
		token := strings.TrimSpace(value)
		switch {
		case token != "":
			return map[string]string{"": token}, nil
		case value != "":
			return nil, fmt.Errorf("$%s contains no token", variable)
		}
		return nil, nil
	}
	text, err := readSecrets(file)
	if err != nil {
		return nil, err
	}
	tokens, named := map[string]string{}, map[string]bool{}
	n := 0
	for line := range strings.Lines(withoutMark(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) > 2 {
			return nil, fmt.Errorf("%s:%d: expected TOKEN, or NAME TOKEN", file, n) // the line contains a secret
		}
		name := ""
		if len(words) == 2 {
			name = words[0]
		}
		if _, twice := tokens[name]; twice {
			return nil, fmt.Errorf("%s:%d: duplicate token name", file, n)
		}
		token := words[len(words)-1]
		if named[token] {
			return nil, fmt.Errorf("%s:%d: duplicate token", file, n)
		}
		tokens[name], named[token] = token, true
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s contains no token", file)
	}
	return tokens, nil
}

// readSecrets reads a file of tokens or headers.
func readSecrets(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil { // opening it reports the error
		if err := secretfile.Check(path, info); err != nil {
			return nil, err
		}
	}
	return input.ReadFile(path, maxSecrets)
}

// withoutMark removes the byte order mark that some editors write.
func withoutMark(text []byte) string { return strings.TrimPrefix(string(text), "\ufeff") }
