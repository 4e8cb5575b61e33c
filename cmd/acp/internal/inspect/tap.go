package inspect

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/wholefile"
)

// A tap is the command of an editor's agent. It starts the agent, passes on everything, and sends a recording of it to
// the inspection, whose address and secret are in a file that only the user can read. It opens an HTTP connection,
// on which each side proves that it knows the secret, and which then carries the recording.

const (
	tapPath     = "/tap"
	tapProtocol = "acp-recording"
	tapHeader   = "Acp-Inspect-Proof"
	greetTime   = 2 * time.Second  // for the start, for which the editor waits
	tapTime     = 10 * time.Second // for each write
)

// TapFile is the content of the file that taps read.
type TapFile struct {
	Address string `json:"address"`
	Secret  string `json:"secret"`
}

// WriteTapFile writes the file for taps, and returns a function that removes it, unless another inspection has replaced
// it since.
func WriteTapFile(path string, f TapFile) (remove func() error, err error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if err := wholefile.Replace(path, text, 0o600); err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && string(now) != string(text) {
			return nil
		}
		return errors.Join(err, os.Remove(path))
	}, nil
}

// NewTapSecret returns a new secret for a TapFile.
func NewTapSecret() string { return rand.Text() }

// ErrNoInspection means that there is no file for taps, because nothing listens.
var ErrNoInspection = errors.New("no inspection listens")

// DialTap connects a tap to the inspection that a file names. What is written to the result must be a recording.
func DialTap(path string) (io.WriteCloser, error) {
	text, err := input.ReadFile(path, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoInspection
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others than you may read it; it is not used", path)
	}
	var f TapFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	host, _, err := net.SplitHostPort(f.Address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s: %q is not an address of this machine", path, f.Address)
	}
	conn, err := net.DialTimeout("tcp", f.Address, greetTime)
	if err != nil {
		return nil, err
	}
	if err := greet(conn, &f); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &tapConn{conn}, nil
}

// greet opens the connection, and requires that the other side knows the secret.
func greet(conn net.Conn, f *TapFile) error {
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return err
	}
	nonce := rand.Text()
	r, err := http.NewRequest(http.MethodGet, "http://"+f.Address+tapPath, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", tapProtocol)
	r.Header.Set(tapHeader, nonce+"."+proof(f.Secret, "tap", nonce))
	if err := r.Write(conn); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), r) // the inspection sends nothing after this
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols ||
		!hmac.Equal([]byte(answer.Header.Get(tapHeader)), []byte(proof(f.Secret, "inspection", nonce))) {
		return fmt.Errorf("no acp inspect is listening at %s (%s)", f.Address, answer.Status)
	}
	return conn.SetDeadline(time.Time{})
}

// proof returns what only those who know the secret can tell about a nonce.
func proof(secret, role, nonce string) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s %s", role, nonce)
	return hex.EncodeToString(h.Sum(nil))
}

// tapConn fails if the inspection takes nothing, so that the end of the agent does not wait for it for long.
type tapConn struct{ conn net.Conn }

func (c *tapConn) Write(b []byte) (int, error) {
	if err := c.conn.SetWriteDeadline(time.Now().Add(tapTime)); err != nil {
		return 0, err
	}
	return c.conn.Write(b)
}

func (c *tapConn) Close() error { return c.conn.Close() }

// serveTap serves the connection of a tap.
func (s *Server) serveTap(w http.ResponseWriter, r *http.Request) {
	nonce, given, _ := strings.Cut(r.Header.Get(tapHeader), ".")
	if s.tap == "" || r.Header.Get("Upgrade") != tapProtocol || r.Header.Get("Origin") != "" ||
		!hmac.Equal([]byte(given), []byte(proof(s.tap, "tap", nonce))) {
		http.Error(w, "acp inspect: not a tap", http.StatusForbidden)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "acp inspect: this connection cannot be a tap", http.StatusInternalServerError)
		return
	}
	if !s.in.enter() {
		http.Error(w, "acp inspect: "+errClosed.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.in.running.Done()
	s.forget(connOf(r))
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return // the connection is lost
	}
	defer conn.Close()
	defer context.AfterFunc(s.in.context, func() { _ = conn.Close() })() // its reader ends
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n",
		tapProtocol, tapHeader, proof(s.tap, "inspection", nonce)) // reading fails if this does
	// What the tap has not sent is a gap in the source; there is no one else to tell.
	_ = s.in.read(sourceOptions{kind: "tap"}, recording.NewReader(buffered, nil))
}
