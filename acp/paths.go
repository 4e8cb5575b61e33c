// This file owns the checks of paths, which are absolute in the whole protocol.

package acp

import (
	"strconv"
	"strings"
)

// checkSetup refuses paths of a session that are not absolute.
func checkSetup[Path ~string](cwd Path, roots []Path, servers []MCPServer) error {
	if err := checkPath("/cwd", cwd); err != nil {
		return err
	}
	for i, root := range roots {
		if err := checkPath("/additionalDirectories/"+strconv.Itoa(i), root); err != nil {
			return err
		}
	}
	for i, server := range servers {
		if stdio, ok := server.Variant.(*MCPServerStdio); ok {
			if err := checkPath("/mcpServers/"+strconv.Itoa(i)+"/command", stdio.Command); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOptPath[Path ~string](pointer string, path Opt[Path]) error {
	if path, ok := path.Get(); ok {
		return checkPath(pointer, path)
	}
	return nil
}

// checkPath accepts absolute paths of any system: the peer may run on another one.
func checkPath[Path ~string](pointer string, p Path) error {
	path := string(p)
	drive := len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || drive {
		return nil
	}
	return invalid(pointer, "not an absolute path")
}

func invalid(pointer, reason string) *Error {
	return ErrInvalidParams.WithMessagef("Invalid params: %s: %s", pointer, reason).
		WithData(map[string]string{"pointer": pointer, "reason": reason})
}
