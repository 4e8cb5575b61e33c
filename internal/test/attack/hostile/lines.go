package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/test/badlines"
)

const mib = 1 << 20

// Patience bounds how long an answer may take that should come at once. That the machine is busy is no finding: the time
// is a Clock's.
const Patience = 60 * time.Second

// ping waits until everything that was sent has been read.
func (c *Conn) ping() error {
	_, err := c.Call("_attack/nothing", `{}`, Patience)
	return err
}

// many sends n lines, many at a time.
func (c *Conn) many(n int, line func(b *strings.Builder, i int)) error {
	var lines strings.Builder
	for i := range n {
		line(&lines, i)
		if lines.Len() > mib {
			if err := c.Raw(lines.String()); err != nil {
				return err
			}
			lines.Reset()
		}
	}
	return c.Raw(lines.String())
}

// Deep sends values of great depth. carry makes lines that carry a value where any value may stand.
func (c *Conn) Deep(depth int, carry func(value string) []string) error {
	for _, depth := range []int{250, 1000, depth} {
		for _, nested := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "0" + strings.Repeat("}", depth),
			strings.Repeat("[", depth),
		} {
			lines := append(carry(nested),
				`{"jsonrpc":"2.0","method":"_attack/deep","params":`+nested+`}`,
				`{"jsonrpc":"2.0","id":"deep","result":`+nested+`}`,
				`{"jsonrpc":"2.0","id":`+nested+`,"method":"_attack/deep"}`,
				nested)
			for _, line := range lines {
				if err := c.Raw(line, "\n"); err != nil {
					return err
				}
			}
		}
	}
	return c.ping()
}

// LongLine sends a line that is longer than a message may be, of so many MiB.
func (c *Conn) LongLine(n int) error {
	if err := c.Raw(`{"jsonrpc":"2.0","id":"long","method":"_attack/long","params":{"text":"`); err != nil {
		return err
	}
	piece := strings.Repeat("l", mib)
	for range n {
		if err := c.Raw(piece); err != nil {
			return err
		}
	}
	if err := c.Raw(`"}}`, "\n"); err != nil {
		return err
	}
	return c.ping()
}

// BadLines sends every line that no peer should send, n times.
func (c *Conn) BadLines(n int) error {
	for range n {
		for _, line := range badlines.Lines("_attack/line", `"x":1`) {
			if err := c.Raw(line.Text, "\n"); err != nil {
				return err
			}
		}
	}
	return c.ping()
}

// Garbage sends so many MiB of bytes at random, of which some are newlines and braces.
func (c *Conn) Garbage(n int) error {
	random := rand.NewChaCha8([32]byte{})
	buffer := make([]byte, mib)
	for range n {
		random.Read(buffer)
		for i := 0; i < len(buffer); i += 97 {
			buffer[i] = "\n{}[]\"\\:,0"[i%10]
		}
		if err := c.Raw(string(buffer)); err != nil {
			return err
		}
	}
	if err := c.Raw("\n"); err != nil {
		return err
	}
	return c.ping()
}

// AnswersToNothing sends n answers that nobody waits for, with many ids.
func (c *Conn) AnswersToNothing(n int) error {
	err := c.many(n, func(b *strings.Builder, i int) {
		id := []string{fmt.Sprint(i + 1000), `"x"`, "null", "1.0", "1e0", "-1", "{}", "[]", "1", "0", "2"}[i%11]
		switch i % 3 {
		case 0:
			fmt.Fprintf(b, `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`+"\n", id)
		case 1:
			fmt.Fprintf(b, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}`+"\n", id)
		case 2:
			fmt.Fprintf(b, `{"jsonrpc":"2.0","id":%s}`+"\n", id)
		}
	})
	if err != nil {
		return err
	}
	return c.ping()
}

// ManyIDs sends n requests for nothing, each with an id of its own, and then some whose ids are very long.
func (c *Conn) ManyIDs(n, long int) error {
	const unknown = `,"method":"_attack/nothing","params":{}}` + "\n"
	err := c.many(n, func(b *strings.Builder, i int) { fmt.Fprintf(b, `{"jsonrpc":"2.0","id":"many-%d"%s`, i, unknown) })
	if err != nil {
		return err
	}
	id := strings.Repeat("i", mib)
	for i := range long {
		if err := c.Raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d%s"%s`, i, id, unknown)); err != nil {
			return err
		}
	}
	return c.ping()
}

// Cancellations cancels n requests and turns that there are not.
func (c *Conn) Cancellations(n int) error {
	err := c.many(n, func(b *strings.Builder, i int) {
		fmt.Fprintf(b, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`+"\n", i+1_000_000)
		if i%10 == 0 {
			fmt.Fprintf(b, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"no-%d"}}`+"\n", i)
		}
	})
	if err != nil {
		return err
	}
	return c.ping()
}

// DuplicateIDs has n requests with one id at once. Each must be answered.
func (c *Conn) DuplicateIDs(n int) error {
	answers, forget := c.Expect(`"same"`, n)
	defer forget()
	if err := c.Raw(strings.Repeat(`{"jsonrpc":"2.0","id":"same","method":"_attack/same","params":{}}`+"\n", n)); err != nil {
		return err
	}
	for i := range n {
		if _, err := Await(answers, Patience); err != nil {
			return fmt.Errorf("answer %d of %d to one id: %w", i+1, n, err)
		}
	}
	return nil
}

// TrickleCall is Call with a request that is written byte by byte.
func (c *Conn) TrickleCall(method, params string, pause time.Duration) (*Message, error) {
	answers, forget := c.Expect(`"slow"`, 1)
	defer forget()
	err := c.Trickle(`{"jsonrpc":"2.0","id":"slow","method":`+Quote(method)+`,"params":`+params+"}\n", pause)
	if err != nil {
		return nil, err
	}
	return Await(answers, Patience)
}
