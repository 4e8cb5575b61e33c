package inspect

import (
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

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/wholefile"
)

// A tap is the command of an editor's agent. It starts the agent, passes on everything, and sends a recording of it to
// the inspection, whose address and secret are in a file that only the user can read. It opens a WebSocket, on which
// each side proves that it knows the secret, and which then carries the recording.

const (
	tapPath   = "/tap"
	tapHeader = "Acp-Inspect-Proof"
	greetTime = 2 * time.Second  // for the start, for which the editor waits
	tapTime   = 10 * time.Second // for each write
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
	return greet(&f)
}

// greet opens the connection, and requires that the other side knows the secret.
func greet(f *TapFile) (io.WriteCloser, error) {
	ctx, cancel := context.WithTimeout(context.Background(), greetTime)
	defer cancel()
	nonce := rand.Text()
	header := http.Header{tapHeader: {nonce + "." + proof(f.Secret, "tap", nonce)}}
	conn, answer, err := websocket.Dial(ctx, "ws://"+f.Address+tapPath, &websocket.DialOptions{HTTPHeader: header})
	if answer == nil {
		return nil, err
	}
	if err == nil && hmac.Equal([]byte(answer.Header.Get(tapHeader)), []byte(proof(f.Secret, "inspection", nonce))) {
		return &tapConn{websocket.NetConn(context.Background(), conn, websocket.MessageBinary), conn}, nil
	}
	if conn != nil {
		_ = conn.CloseNow() // it is someone else's
	}
	return nil, fmt.Errorf("no acp inspect is listening at %s (%s)", f.Address, answer.Status)
}

// proof returns what only those who know the secret can tell about a nonce.
func proof(secret, role, nonce string) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s %s", role, nonce)
	return hex.EncodeToString(h.Sum(nil))
}

// tapConn fails if the inspection takes nothing, so that the end of the agent does not wait for it for long.
type tapConn struct {
	conn   net.Conn
	socket *websocket.Conn // below conn
}

func (c *tapConn) Write(b []byte) (int, error) {
	if err := c.conn.SetWriteDeadline(time.Now().Add(tapTime)); err != nil {
		return 0, err
	}
	return c.conn.Write(b)
}

// Close does not wait for an answer: an inspection that was stopped gives none.
func (c *tapConn) Close() error { return c.socket.CloseNow() }

// serveTap serves the connection of a tap.
func (s *Server) serveTap(w http.ResponseWriter, r *http.Request) {
	nonce, given, _ := strings.Cut(r.Header.Get(tapHeader), ".")
	if s.tap == "" || r.Header.Get("Origin") != "" || !hmac.Equal([]byte(given), []byte(proof(s.tap, "tap", nonce))) {
		http.Error(w, "acp inspect: not a tap", http.StatusForbidden)
		return
	}
	if !s.in.enter() {
		http.Error(w, "acp inspect: "+errClosed.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.in.running.Done()
	s.forget(connOf(r))
	w.Header().Set(tapHeader, proof(s.tap, "inspection", nonce))
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	// What the tap has not sent is a gap in the source; there is no one else to tell.
	_ = s.in.read(sourceOptions{kind: "tap"},
		recording.NewReader(tapReader{websocket.NetConn(s.in.context, conn, websocket.MessageBinary)}, nil))
}

// tapReader ends like a file if the tap is killed, which does not end the WebSocket.
type tapReader struct{ io.Reader }

func (r tapReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
