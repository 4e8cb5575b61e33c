// Rules of the page session-config-options.

package rules

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var configOptionRules = []judge.Rule{
	{ID: "CFG-3", On: offersOptions, Check: func(e *judge.Event) {
		for i, option := range configOptions(e).Items() {
			if option.Text("type") == "boolean" && !e.Client.Can("session.configOptions.boolean") {
				e.Broken(schema.Element(optionsPointer(e), i)+"/type",
					"the client does not advertise session.configOptions.boolean").
					Because(e.Client.At, "its capabilities")
			}
		}
	}},
	{ID: "CFG-7", On: offersOptions, Check: func(e *judge.Event) {
		for i, option := range configOptions(e).Items() {
			switch category := option.Text("category"); {
			case !option.Member("category").IsText(), strings.HasPrefix(category, "_"), slices.Contains(categories, category):
			default:
				e.Broken(schema.Element(optionsPointer(e), i)+"/category",
					"%q is not a category of the protocol and does not begin with an underscore", finding.Clip(category))
			}
		}
	}},
	{ID: "CFG-14", On: offersOptions, Check: func(e *judge.Event) {
		for i, option := range configOptions(e).Items() {
			where := schema.Element(optionsPointer(e), i)
			read := judge.ReadOption(&judge.Offer{}, option)
			if read.Values != nil && option.Member("currentValue").IsText() && !read.Values[read.Current] && e.Sound(where) {
				e.Broken(where+"/currentValue", "%q is not one of the options", finding.Clip(option.Text("currentValue")))
			}
		}
	}},
	// Everything that was ever offered counts, because the client may not have seen the last change yet.
	{ID: "CFG-16", On: requests(judge.MethodSetOption), Check: func(e *judge.Event) {
		s, id, value := e.Session, e.Text("configId"), e.Content.Member("value")
		if s == nil || s.Options == nil || s.Options.More || s.Settable.Forgot || id == "" || !e.Sound("/value") {
			return
		}
		had := func(what ...string) bool { _, ok := s.Settable.Get(judge.SettableKey(id, what...)); return ok }
		kind := ""
		if now := s.Options.Items[judge.Short(id)]; now != nil {
			kind = now.Kind
		}
		switch {
		case !had():
			e.Broken("/configId", "the session has no option %q", finding.Clip(id)).
				Because(s.Options.At, "the options of the session")
		case kind == "select" && !had("boolean") && !value.IsText(),
			kind == "boolean" && !had("select") && (value.IsText() || e.Text("type") != "boolean"):
			e.Broken("/value", "the value does not fit an option of type %s", kind).
				Because(s.Options.At, "the options of the session")
		case kind == "select" && !had("boolean") && !had("select", value.Text()):
			e.Broken("/value", "%q is not a value of the option %q", finding.Clip(value.Text()), finding.Clip(id)).
				Because(s.Options.At, "the options of the session")
		}
	}},
	{ID: "CFG-17", On: results(judge.MethodSetOption), Check: func(e *judge.Event) {
		s, list := e.Session, configOptions(e)
		id, value := e.Request.Params.Text("configId"), e.Request.Params.Member("value")
		if s == nil || id == "" || !list.IsArray() || !e.Sound("/configOptions") {
			return
		}
		for i, option := range list.Items() {
			if option.Text(judge.OptionKey(e.Content)) != id {
				continue
			}
			now := option.Member("currentValue")
			same := now.IsText() && value.IsText() && now.Text() == value.Text() || !now.IsText() && !value.IsText() &&
				now.True() == value.True()
			if kind := option.Text("type"); (kind == "select" || kind == "boolean") && !same && !isBusy(e, s) {
				e.Broken(schema.Element("/configOptions", i)+"/currentValue", "the option does not have the value that was set").
					Because(e.Request.At, "the request")
			}
			checkSingleOption(e, finding.Should)
			return
		}
		e.Broken("/configOptions", "the option %q, which was set, is missing", finding.Clip(id)).
			Because(e.Request.At, "the request")
	}},
	{ID: "CFG-18", On: updates("config_option_update"),
		Check: func(e *judge.Event) { checkSingleOption(e, finding.Advice) }},
	{ID: "CFG-19", On: results(judge.MethodNew, judge.MethodLoad, judge.MethodResume), Check: func(e *judge.Event) {
		modes := e.Has("modes", "availableModes")
		_, options := findModeOption(e)
		if !e.Sound("/modes") || !e.Sound("/configOptions") {
			return
		}
		switch {
		case modes && options == 0 && e.Content.Len("modes", "availableModes") > 0:
			e.Broken("/configOptions", "the agent gave modes but no option of the category mode")
		case !modes && options > 0:
			e.Broken("/modes", "the agent gave an option of the category mode but no modes")
		}
	}},
	// Both are in one message, so the agent knew what it said. Later messages may have crossed.
	{ID: "CFG-22", On: results(judge.MethodNew, judge.MethodLoad, judge.MethodResume), Check: func(e *judge.Event) {
		i, count := findModeOption(e)
		mode := e.Text("modes", "currentModeId")
		if count != 1 || mode == "" || !e.Sound("/configOptions") {
			return
		}
		for k, option := range configOptions(e).Items() {
			if read := judge.ReadOption(&judge.Offer{}, option); k == i && read.Values[judge.Short(mode)] &&
				read.Current != judge.Short(mode) {
				e.Broken(schema.Element("/configOptions", i)+"/currentValue", "the option is %q, but the current mode is %q",
					finding.Clip(option.Text("currentValue")), finding.Clip(mode))
			}
		}
	}},
}

// categories has the categories that the protocol defines.
var categories = []string{"mode", "model", "model_config", "thought_level"}

// findModeOption returns the index of the last option of the category mode, and the number of such options.
func findModeOption(e *judge.Event) (last, count int) {
	for i, option := range configOptions(e).Items() {
		if option.Text("category") == "mode" {
			last = i
			count++
		}
	}
	return last, count
}

// checkSingleOption reports a single option in a session that had more, because it looks like a change and not like the
// whole list.
func checkSingleOption(e *judge.Event, level finding.Level) {
	const many = 3
	if s := e.Session; s != nil && s.Options != nil && configOptions(e).Len() == 1 && len(s.Options.Items) >= many &&
		e.Sound(optionsPointer(e)) {
		e.Broken(optionsPointer(e), "got only one option of %d; the list is meant to be complete", len(s.Options.Items)).
			Because(s.Options.At, "the earlier options").Mildly(level)
	}
}

// isBusy reports whether anything other than the answered request may have changed the options of its session since
// then: work in the session, another such request, or the agent on its own.
func isBusy(e *judge.Event, s *judge.Session) bool {
	return !s.Quiet() || s.Setting > 1 || s.Touched > e.Request.At.Number
}
