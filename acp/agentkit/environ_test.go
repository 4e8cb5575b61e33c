package agentkit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/agentkit"
)

// TestEnviron requires that programs get no key of a model's API, and everything else.
func TestEnviron(t *testing.T) {
	secret := strings.Fields(`OPENAI_API_KEY openai_api_key OPENAI_API_KEY_2 OPENAI_ADMIN_KEY ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN
		ANTHROPIC_CUSTOM_HEADERS CLAUDE_CODE_OAUTH_TOKEN GEMINI_API_KEY GOOGLE_API_KEY AZURE_OPENAI_API_KEY AZURE_OPENAI_AD_TOKEN
		OPENROUTER_API_KEY AWS_BEARER_TOKEN_BEDROCK HF_TOKEN HUGGING_FACE_HUB_TOKEN REPLICATE_API_TOKEN EXAMPLE_APIKEY
		ACP_TOKEN ACP_SERVE_TOKEN MY_OWN`)
	plain := strings.Fields(`OPENAI_BASE_URL OPENAI_MODEL ANTHROPIC_MODEL ANTHROPIC_MAX_TOKENS GITHUB_TOKEN AWS_ACCESS_KEY_ID SSH_AUTH_SOCK EXAMPLE_KEYBOARD`)
	for _, name := range slices.Concat(secret, plain) {
		t.Setenv(name, "value")
	}
	env := agentkit.Environ("my_own")
	for _, name := range secret {
		if slices.Contains(env, name+"=value") {
			t.Errorf("%s is passed on", name)
		}
	}
	for _, name := range plain {
		if !slices.Contains(env, name+"=value") {
			t.Errorf("%s is left out", name)
		}
	}
}
