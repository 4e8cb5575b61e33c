// The fake MCP server, of which a session's agent should make use.

package probe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"github.com/acpgo/sdk/conformance/internal/player"
	"io"
	"os"
	"strings"
)

// ServeMCP serves the Model Context Protocol over lines, with one tool that does nothing, until the input ends. It logs
// its start, the value of ACP_PROBE_MCP, and every method it receives. A program makes itself the command of
// [Options.MCP] with it.
func ServeMCP(in io.Reader, out, log io.Writer) error {
	if _, err := fmt.Fprintf(log, "env %s\n", os.Getenv("ACP_PROBE_MCP")); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := player.Parse(lines.Bytes())
		if m.Method == "" {
			continue
		}
		if _, err := fmt.Fprintf(log, "method %s\n", strings.ReplaceAll(m.Method, "\n", " ")); err != nil {
			return err
		}
		if m.ID == "" {
			continue
		}
		reply := `"error":{"code":-32601,"message":"Method not found"}`
		switch m.Method {
		case "initialize":
			version := player.Member(m.Params, "protocolVersion")
			if version == nil {
				version = json.RawMessage(`"2025-06-18"`)
			}
			reply = `"result":{"protocolVersion":` + string(version) + `,"capabilities":{"tools":{}},"serverInfo":{"name":"acp-probe","version":"1"}}`
		case "ping":
			reply = `"result":{}`
		case "tools/list":
			reply = `"result":{"tools":[{"name":"acp_probe","description":"Does nothing.","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			reply = `"result":{"content":[{"type":"text","text":"Nothing was done."}]}`
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, reply); err != nil {
			return err
		}
	}
	return lines.Err()
}
