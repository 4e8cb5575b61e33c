package recording

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// This file finds secrets in texts that were written for people or for shells: by the shapes of keys, and by names.

// shape is a pattern for secrets in texts. Its last group is the secret; if it has none, the whole match is. If it has
// two groups, the first is a name, which must be that of a secret.
type shape struct {
	// some has texts of which one must occur for the pattern to be tried, because searching for them is much faster.
	some    []string
	pattern *regexp.Regexp
	also    []string // if not nil, one of these must occur, too
}

// mayMatch reports whether it is worth to try the pattern.
func (s *shape) mayMatch(text []byte) bool {
	occurs := func(some string) bool { return bytes.Contains(text, []byte(some)) }
	return slices.ContainsFunc(s.some, occurs) && (s.also == nil || slices.ContainsFunc(s.also, occurs))
}

// secretWords are the names of parameters of URLs.
const secretWords = `(?:api[_-]?key|access[_-]?key|private[_-]?key|key|token|secret|password|passwd|passphrase|pwd|credentials?|signature|sig|auth|code|jwt)`

// theName matches the name of a setting, variable or header, and argument a value in a command.
const theName, argument = `([\w.:/-]{1,64})`, `["'\\]*([^\s"'\\&;|<>-][^\s"'\\&;|<>]*)`

// nameParts are parts of names of secrets.
var nameParts = []string{"oken", "OKEN", "ecret", "ECRET", "ass", "ASS", "redential", "CREDENTIAL", "ey", "EY", "auth",
	"pw"}

// prefixes are those of keys of known forms that have no other mark.
const prefixes = `glpat-|hf_|pypi-|dop_v1_|shpat_|lin_api_|figd_|xai-|gsk_|r8_|tvly-|pplx-|nvapi-|dckr_pat_|whsec_|hvs\.|ATATT3x|GOCSPX-|PMAK-|sntrys_|xapp-|glsa_|gl[rd]t-|rubygems_|dp\.[ps]t\.(?:\w+\.)?|ntn_|sbp_|sb_secret_|vercel_blob_rw_|NRAK-|lsv2_[ps][tk]_|tskey-|ops_eyJ|shpca_|shpss_|sq0[ac][ts]p-|doo_v1_|pul-|pscale_|phx_|dckr_oat_|fm2_|fm1r_|CFPAT-|hvb\.|atlasv1\.`

// curls are commands that take a user and a password after -u.
const curls = `\b(?:curl|wget|https?|xh|ab|smbclient|ldapsearch|mosquitto_\w+|restic|svn)\b`

// A text may be JSON or source code that contains strings, so a secret ends before a quote or a backslash.
var shapes = []shape{
	{[]string{"sk-", "sk_", "rk_", "pk_"}, regexp.MustCompile(`\b(?:sk|rk|pk)(?:-(?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}|_(?:live|test|prod)_[A-Za-z0-9]{10,})`), nil},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`), nil},
	{[]string{"glpat-", "npm_", "hf_", "pypi-", "dop_v1_", "shpat_", "lin_api_", "figd_", "xai-", "gsk_", "r8_", "tvly-",
		"pplx-", "nvapi-", "dckr_pat_", "whsec_", "hvs.", "ATATT3x", "GOCSPX-", "PMAK-", "sntrys_", "xapp-",
		"glsa_", "glrt-", "gldt-", "rubygems_", "dp.st.", "dp.pt.", "ntn_", "sbp_", "sb_secret_", "vercel_blob_rw_", "NRAK-",
		"lsv2_", "tskey-", "ops_eyJ", "shpca_", "shpss_", "sq0atp-", "sq0csp-", "doo_v1_", "pul-", "pscale_", "phx_",
		"dckr_oat_", "fm2_", "fm1r_", "CFPAT-", "hvb.", "atlasv1."},
		regexp.MustCompile(`\b(?:npm_[A-Za-z0-9]{14}|` + prefixes + `)[A-Za-z0-9_-]{16,}`), nil},
	{[]string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), nil},
	{[]string{"AIza"}, regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`), nil},
	{[]string{"ya29."}, regexp.MustCompile(`\bya29\.[A-Za-z0-9_-]{20,}`), nil},
	{[]string{"xox"}, regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`), nil},
	{[]string{"SG."}, regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`), nil},
	{[]string{"AGE-SECRET-KEY-"}, regexp.MustCompile(`\bAGE-SECRET-KEY-1[A-Z0-9]{20,}`), nil},
	{[]string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), nil},
	{[]string{"earer ", "EARER "}, regexp.MustCompile(`(?i)\bbearer +([A-Za-z0-9._~+/=-]{8,})`), nil},
	{[]string{"uthorization", "UTHORIZATION"}, regexp.MustCompile(`(?i)\bauthorization["'\\]*\s*[:=]\s*["'\\]*(?:basic|token|digest|negotiate|apikey)\s+([A-Za-z0-9._~+/=-]{4,})`), nil},
	{[]string{"uthorization", "UTHORIZATION"}, regexp.MustCompile(`(?i)\bauthorization["'\\]*\s*[:=]\s*["'\\]*[a-z][\w-]*\s+([^\s"'\\,]*\d[^\s"'\\,]*)(?:["'\\\r\n]|$)`), nil},
	{[]string{"response="}, regexp.MustCompile(`(?i)\bdigest\b[^\n]*\bresponse=["'\\]*([^\s"'\\,]+)`), nil},
	{[]string{"ookie", "OOKIE"}, regexp.MustCompile(`(?i)\b(?:set-)?cookie["'\\]*\s*:\s*["'\\]*([^\s=;:"'\\]+=[^"'\\\r\n]+)`), nil},
	{[]string{" -b", "--cookie"}, regexp.MustCompile(`\bcurl\b[^\n;|]*?\s(?:-b|--cookie)[ =]*["'\\]*([^\s=;:"'\\]+=[^"'\\\r\n]+)`), []string{"curl"}},
	{[]string{"://"}, regexp.MustCompile(`://([^\s/?#@"'\\<>]+)@`), nil},
	{[]string{"?", "&", "#"}, regexp.MustCompile(`(?i)[?&#](?:[\w.-]*[_.-])?` + secretWords + `=([^\s&#"'\\<>]+)`), nil},
	{[]string{"hooks.slack.com/"}, regexp.MustCompile(`\bhooks\.slack\.com/(?:services|workflows)/([\w/-]{16,})`), nil},
	{[]string{"/webhook"}, regexp.MustCompile(`\boffice\.com/webhook\w*/([\w@-]{16,}/[\w/-]+)`), nil},
	{[]string{"/webhooks/"}, regexp.MustCompile(`\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([\w-]{16,})`), nil},
	{[]string{"/bot"}, regexp.MustCompile(`\bapi\.telegram\.org/bot([\w:-]{16,})`), nil},
	{[]string{"curl", "wget", "http", "xh ", "ab ", "smbclient", "ldapsearch", "mosquitto_", "restic", "svn "},
		regexp.MustCompile(`(?:` + curls + `)[^\n;|]*?\s(?:-[A-Za-z]*[uUa]|--user|--proxy-user|--auth)[ =]*["'\\]*[^\s:"'\\]+:([^\s"'\\]+)`), []string{" -"}},
	{[]string{" -p"}, regexp.MustCompile(`\b(?:sshpass|login|mongo\w*|twine|snowsql|useradd|ncftp\w+)\b(?:[^\n;|&]*?)\s-p[ =]*` + argument), nil},
	{[]string{" -P", " -a", " -w"}, regexp.MustCompile(`\b(?:redis-cli\b[^\n;|&]*?\s-a|(?:(?:un)?zip|sqlcmd|bcp|isql)\b[^\n;|&]*?\s-P|ldap[a-z]+\b[^\n;|&]*?\s-w)[ =]*` + argument), nil},
	{[]string{"mysql", "mariadb", "7z", "rar "}, regexp.MustCompile(`\b(?:mysql|mariadb|7z|u?n?rar)\w*\b(?:[^\n;|&]*?)\s-h?p` + argument), []string{" -p", " -hp"}},
	{[]string{"htpasswd", "smbclient", "lftp", "sqlplus", ":thin:", "mysqladmin"},
		regexp.MustCompile(`(?:\bhtpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+|\bsmbclient\b[^\n;|&]*?\s-U\s*["'\\]*[^\s%]+%|\blftp\b[^\n;|&]*?\s-u\s*["'\\]*[^\s,]+,|(?:\bsqlplus\s+(?:-\w+\s+)*|:thin:)[^\s/@-]+/|\bmysqladmin\b[^\n;|&]*?\spassword\s+)["'\\]*([^\s"'\\&;|<>@-][^\s"'\\&;|<>@]*)`), nil},
	{[]string{"cargo login", "vault login"}, regexp.MustCompile(`\b(?:cargo|vault) login\s+(?:-\S+\s+)*([^\s"'\\=-][^\s"'\\=]{7,})`), nil},
	{[]string{"ssh-keygen", "openssl", "secret set"},
		regexp.MustCompile(`\b(?:ssh-keygen\b[^\n;|&]*?\s-N|openssl\b[^\n;|&]*?\s-k|secret set\b[^\n;|&]*?\s(?:--body|-b))[ =]+["'\\]*([^\s"'\\&;|<>-][^\s"'\\&;|<>]*)`), nil},
	{[]string{"-stdin", "sudo -S", "--with-token", "chpasswd"}, regexp.MustCompile(`\b(?:echo|printf)\s+(?:-n\s+)?["'\\]*(?:\w+:)?([^\s"'\\|$]+)["'\\]*\s*\|[^\n]*(?:-stdin|sudo -S|--with-token|chpasswd)`), nil},
	{[]string{"<<<"}, regexp.MustCompile(`\b(?:\S*-stdin|sudo -S|login|ssh-add|chpasswd)\b[^\n;|&<]*<<<\s*` + argument), nil},
	{[]string{"ENV ", "set ", "setx ", "export ", " add "}, // NAME value
		regexp.MustCompile(`\b(?:ENV|[sS]etx?|export|env add)\s+["'\\]*` + theName + `["'\\]*\s+["'\\]*([^\s"'\\=$]*\d[^\s"'\\=]{5,})`), nil},
	{[]string{"equirepass", "asterauth", "indpw", "AUTH "}, regexp.MustCompile(`(?m)^\s*(?:requirepass|masterauth|bindpw|AUTH)[ \t]+["'\\]*([^\s"'\\]*\d[^\s"'\\]*)["'\\]*\s*$`), nil},
	{[]string{"ey=", "ame="}, // <name="NAME" value="value">, <name="NAME">value<
		regexp.MustCompile(`(?i)(?:key|name)=["'\\]*` + theName + `["'\\]*(?:\s+value=["'\\]+|>)([^"'\\<\n]+)`), nil},
	{nameParts, // with a type before the value
		regexp.MustCompile(`\b(\w+)(?:\[\]|\??\s*:\s*[&\w.]+|\s+string)\s*=\s*` +
			"[\"'`\\\\]+([^\\s\"'`\\\\]{6,})[\"'`\\\\]"), []string{"="}},
	{nameParts, // set("NAME", "value")
		regexp.MustCompile(`\(["'\\]+` + theName + `["'\\]+\s*,\s*["'\\]+([^\s"'\\]*\d[^\s"'\\]{5,})["'\\]+\)`), []string{","}},
	{nameParts, // setNAME("value")
		regexp.MustCompile(`\b(?:[sS]et|[wW]ith)_?([A-Za-z]\w*)\(["'\\]+([^\s"'\\]*\d[^\s"'\\]{5,})["'\\]+\)`), []string{"(\"", "('", "(\\"}},
	{[]string{"auth", "Auth"}, regexp.MustCompile(`(?:[bB]asic_?Auth|\bauth=)\(["'\\]+[^"'\\]*["'\\]+\s*,\s*["'\\]+([^"'\\]+)`), []string{"("}},
	{[]string{" pass:"}, regexp.MustCompile(`\s-{1,2}pass(?:in|out)? +["'\\]*pass:([^\s"'\\]+)`), nil},
	{nameParts, // a flag
		regexp.MustCompile(`(?:^|[\s"'\\])-((?:-\w|p(?:ass|w|rivate)|[a-oq-zA-Z])[\w.:/-]*)(?:=| +)` + argument), []string{"-"}},
	{[]string{"password", "PASSWORD"}, regexp.MustCompile(`\b(?:machine\s+\S+|default)\s+(?:(?:login|account)\s+\S+\s+)*password\s+([^\s"'\\]+)`), nil},
	{[]string{"dentified", "DENTIFIED", "assword '", "ASSWORD '", "ASSWORD = "}, regexp.MustCompile(`(?i)\b(?:identified\s+by|password|(?:set|with)\s+password\s+(?:for\s+\S+\s+)?=)\s+N?['"]([^'"]+)['"]`), nil},
	{[]string{"value:"}, regexp.MustCompile(`(?i)name:[ \t]*["'\\]*` + theName + `["'\\]*[ \t]*\r?\n[ \t]*value:[ \t]*["'\\]*([^\s"'\\${][^\s"'\\]*)`), []string{"ame:", "AME:"}},
	{[]string{"</"}, regexp.MustCompile(`<` + theName + `>([^<>\s$]{4,})</`), nil},
	{[]string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----((?s:.*?))(?:-----END|$)`), nil},
	{[]string{"Private-Lines:"}, regexp.MustCompile(`Private-Lines:[ \d\r]+\n((?s:.*?))(?:\nPrivate-MAC|$)`), nil},
}

// begun matches, at the end of a piece of a message, the beginning of a key of a known form, of a URL's password, and
// of a header's value.
var begun = []shape{
	{[]string{"-", "_", ".", "AKIA", "ASIA", "AIza", "eyJ", "ATATT"}, regexp.MustCompile(`\b((?:sk|rk|pk)[-_][A-Za-z0-9_-]*\d|sk-(?:ant|or|proj|svcacct)-[A-Za-z0-9_-]+|npm_[A-Za-z0-9]*\d|(?:gh[pousr]_|github_pat_|xox[a-z]-|AKIA|ASIA|AIza|eyJ|` +
		prefixes + `)[A-Za-z0-9_.-]+)$`), nil},
	{[]string{"://"}, regexp.MustCompile(`://([^\s/?#@"'\\<>:]*:\d*[^\s/?#@"'\\<>\d][^\s/?#@"'\\<>]*)$`), nil},
	{[]string{"uthorization", "UTHORIZATION"}, regexp.MustCompile(`(?i)\bauthorization["'\\]*\s*[:=]\s*["'\\]*[a-z][\w-]*\s+([^\s"'\\]+)$`), nil},
}

var flag = regexp.MustCompile(`^"?--?([\w.-]+)"?$`)

// secretFlag reports whether a word is a flag whose value, the next argument, is a secret.
func secretFlag(word []byte) bool {
	match := flag.FindSubmatch(word)
	return match != nil && kindOfName(match[1]) == nameSecret
}

// The kinds of names, by what they say about their values.
const (
	notSecret   = iota
	maybeSecret // one that looks like a key
	nameSecret  // any value that is not plainly something else
)

var (
	secretEnds = []string{"token", "secret", "password", "passwd", "passphrase", "passcode", "apikey", "pwd", "credential",
		"credentials",
		"privatekey", "secretkey", "accesskey", "accountkey", "subscriptionkey", "signingkey", "encryptionkey", "masterkey",
		"storagekey", "sharedkey", "keybase", "keydata", "storepass", "keypass", "accesskeyid", "authorization", "psk", "pw"}
	maybeEnds = []string{"key", "auth", "signature", "cookie", "jwt", "bearer", "pat", "sas"}
	// notValues has words that stand where a secret could, in lower case.
	notValues = wordSet("none null nil true false undefined empty string required optional missing invalid incorrect " +
		"wrong expired unknown " +
		"default disabled enabled redacted hidden omitted placeholder example changeme secret token password number " +
		"boolean object " +
		"base64 base64url sha256 sha512 bcrypt argon2id oauth2 hs256 rs256 es256 ed25519 utf8 utf-8 bearer basic digest")
	variant = wordSet("old new prod dev test staging local backup")
	letters = regexp.MustCompile(`^[A-Za-z_]+$`)
	member  = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w{0,20})+$`)
	apiKey  = regexp.MustCompile(`(?i)\b(?:api|access|secret|private|account) key[\s*]*$`)
	block   = regexp.MustCompile(`^[ \t]*[>|][+-]?[ \t]*\r?\n[ \t]+`) // begins a value of YAML
	numbers = regexp.MustCompile(`^[\d.,:_+-]+$`)
	located = regexp.MustCompile(`^(?:~?/|\.{1,2}/|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://)`)
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// kindOfName returns what a name in any style says about its value.
func kindOfName(name []byte) int {
	plain, separate := normal(name), bytes.ContainsAny(name, "_-.")
	upper := bytes.IndexFunc(name, unicode.IsLower) < 0
	ends := func(end string) bool { return strings.HasSuffix(plain, end) }
	switch {
	case slices.ContainsFunc(secretEnds, ends), isPass(name, separate), upper && len(plain) > 4 &&
		(ends("key") || ends("auth")):
		return nameSecret
	case slices.ContainsFunc(maybeEnds, ends):
		return maybeSecret
	}
	// Another word may follow, as in DB_PASSWORD_1 or API_KEY_OLD.
	if i := bytes.LastIndexAny(name, "_-"); i > 0 &&
		(variant[strings.ToLower(string(name[i+1:]))] || numbers.Match(name[i+1:])) {
		return kindOfName(name[:i])
	}
	return notSecret
}

// tells reports whether a name says that a word of a command or a program is a secret.
func tells(name, word []byte) bool {
	kind := kindOfName(name)
	return kind == nameSecret || kind == maybeSecret && value{text: string(word), kind: kind}.isSecret()
}

// isPass reports whether a name ends with "pass" as a word: PASS, SSHPASS, db_pass, userPass.
func isPass(name []byte, separate bool) bool {
	before, ok := bytes.CutSuffix(bytes.ToLower(name), []byte("pass"))
	return ok && (separate || len(before) == 0 || len(before) <= 4 && name[0] < 'a' || name[len(before)] == 'P' &&
		name[len(before)+1] == 'a')
}

// assigned calls hide for the values in "name=value", "name: value" and the like, in any language, if the name is that
// of a secret and the value looks like one. A text that continues may end in the middle of a value.
func assigned(text []byte, goesOn bool, hide func(from, to int)) {
	for i := 0; i < len(text); i++ {
		prose := bytes.HasPrefix(text[i:], []byte(" is "))
		cell := text[i] == '|' && len(text) > i+1 && text[i+1] == ' ' &&
			text[bytes.LastIndexByte(text[:i], '\n')+1] == '|' // of a table
		if c := text[i]; c != '=' && c != ':' && !prose && !cell {
			continue
		}
		name := nameBefore(text[:i])
		kind := kindOfName(name)
		if kind == maybeSecret && apiKey.Match(text[max(i-20, 0):i]) {
			kind = nameSecret
		}
		if kind == notSecret {
			continue
		}
		v := value{name: strings.ToLower(string(name)), kind: kind, colon: text[i] == ':' || cell, prose: prose}
		from := i + 1
		if prose {
			from += len("is ")
		}
		if v.colon {
			from += len(block.Find(text[from:]))
		}
		skip := func(chars string) bool {
			start := from
			for from < len(text) && strings.IndexByte(chars, text[from]) >= 0 {
				from++
			}
			return from > start
		}
		operator := skip("=>:") || text[max(i-1, 0)] == '!'
		if bytes.HasPrefix(text[from:], []byte("** ")) { // **name:** value
			from += len("**")
		}
		v.spaced = skip(" \t") || prose
		v.quoted = skip("\"'`\\")
		to := from
		for to < len(text) && !isEnd(text[to]) {
			to++
		}
		if !v.quoted && (v.spaced || v.colon) {
			to = from + len(bytes.TrimRight(text[from:to], "."))
		}
		if end := bytes.IndexByte(text[to:], text[max(from-1, 0)]); v.quoted && !v.colon && !v.spaced && end >= 0 &&
			bytes.IndexByte(text[to:to+end], '\n') < 0 {
			to += len(bytes.TrimRight(text[to:to+end], `\`)) // a phrase
		}
		v.text, v.rest, v.cut = string(text[from:to]), text[to:], goesOn && to == len(text)
		if (!operator || v.quoted) && v.isSecret() {
			hide(from, to)
		}
		i = max(i, from-1)
	}
}

// nameBefore returns the name at the end of a text, without quotes and spaces after it.
func nameBefore(text []byte) []byte {
	const longest = 64
	text = bytes.TrimRight(text, " \t\"'`\\?:!*[])")
	i := len(text)
	for i > 0 && len(text)-i < longest && isNameByte(text[i-1]) {
		i--
	}
	return bytes.TrimLeft(text[i:], "-.")
}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// isEnd reports whether a character ends a value.
func isEnd(c byte) bool { return c <= ' ' || strings.IndexByte("\"'`\\,;&|<>)]}", c) >= 0 }

// value is what follows a name.
type value struct {
	text, name            string // the name in lower case
	kind                  int
	colon, spaced, quoted bool
	prose                 bool   // "the password is"
	cut                   bool   // its end is unknown
	rest                  []byte // the text after it
}

// isSecret reports whether the value looks like a secret, and not like a placeholder, a path, code or prose.
func (v value) isSecret() bool {
	text, lower := v.text, strings.ToLower(v.text)
	digits := strings.ContainsAny(text, "0123456789")
	alike := func(pattern *regexp.Regexp) bool { return pattern.MatchString(text) }
	switch password := strings.Contains(v.name, "pass"); {
	case text == "" || strings.IndexByte("$<{%*[(", text[0]) >= 0 || notValues[strings.TrimRight(lower, ".!?")] ||
		lower == v.name || alike(located):
		return false
	case v.prose && (!digits || len(text) < 8 || alike(numbers)):
		return false
	case v.cut && v.kind == nameSecret:
		return true
	case v.name == "pass" && !digits:
		return false
	case v.kind == maybeSecret:
		return len(text) >= 16 && digits && !alike(numbers) && !strings.ContainsAny(text, "./([") &&
			(!v.spaced && !v.colon || v.ends())
	case (alike(letters) || alike(member)) && kindOfName([]byte(text)) != notSecret:
		return false
	case v.quoted:
		return len(text) >= 6 && bytes.IndexAny(v.rest, "\"'`\\") == 0
	case strings.ContainsAny(text, "(["), alike(member):
		return false
	case alike(numbers):
		return password && len(text) >= 6 && (!v.spaced || v.ends())
	case alike(letters) && (v.colon || v.spaced):
		return password && v.colon && len(text) >= 8 && lower == text && v.ends() && bytes.IndexAny(v.rest, ",;") != 0
	case alike(letters):
		return len(text) >= 4
	case v.colon || v.spaced:
		return len(text) >= 6 && v.ends() || len(text) >= 10 && digits
	}
	return len(text) >= 4
}

// ends reports whether nothing follows the value in its line but marks and a comment.
func (v value) ends() bool {
	rest, _, _ := bytes.Cut(v.rest, []byte("\n"))
	rest = bytes.TrimLeft(rest, " \t\r\"'`\\,;)]}.|*")
	return len(rest) == 0 || rest[0] == '#' || bytes.HasPrefix(rest, []byte("//"))
}
