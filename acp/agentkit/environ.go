package agentkit

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// secrets matches the variables that hold the keys of models' APIs, in upper case: every API_KEY, and whatever secret
// has a provider's name in it; and the tokens of the command acp. Variables that commands need, such as GITHUB_TOKEN,
// are not among them.
var secrets = regexp.MustCompile(`API_?KEY` +
	`|(OPENAI|ANTHROPIC|CLAUDE|CODEX|GEMINI|GOOGLE_AI|BEDROCK|MISTRAL|OPENROUTER|GROQ|DEEPSEEK|XAI|COHERE|TOGETHER` +
	`|FIREWORKS|PERPLEXITY|REPLICATE|OLLAMA|VLLM|LITELLM|HUGGING_?FACE|MOONSHOT|DASHSCOPE|CEREBRAS)` +
	`(_.*)?_(KEYS?|TOKEN|SECRET|PASSWORD|CREDENTIALS?|AUTH|HEADERS?)(_|$)` +
	`|TOKEN_BEDROCK|^HF_TOKEN|^ACP_(SERVE_)?TOKEN`)

// Environ returns the environment for a program that an agent starts, such as a command or an MCP server: that of this
// process without the keys of models' APIs, such as OPENAI_API_KEY and ANTHROPIC_AUTH_TOKEN, and without the variables
// that unset names. Case is ignored. It is not a security boundary: a program of the same user can read this user's
// files and, on Linux, the environment with which this process was started.
func Environ(unset ...string) []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return secrets.MatchString(strings.ToUpper(name)) ||
			slices.ContainsFunc(unset, func(other string) bool { return strings.EqualFold(name, other) })
	})
}
