// This file owns short ways to write the updates that agents send all the time; the generated
// constructors make the rest.

package v2draft

// AgentMessageText is an update with a piece of the agent's message with that id.
func AgentMessageText(id MessageID, text string) SessionUpdate {
	return NewSessionUpdateAgentMessageChunk(ContentChunk{MessageID: id, Content: TextBlock(text)})
}

// AgentThoughtText is an update with a piece of the agent's thought with that id.
func AgentThoughtText(id MessageID, text string) SessionUpdate {
	return NewSessionUpdateAgentThoughtChunk(ContentChunk{MessageID: id, Content: TextBlock(text)})
}

// WholePlan is an update with all entries of the plan with that id, which replace those before.
func WholePlan(id PlanID, entries ...PlanEntry) SessionUpdate {
	return NewSessionUpdatePlanUpdate(PlanUpdate{
		Plan: NewPlanUpdateContentItems(PlanItems{PlanID: id, Entries: entries}),
	})
}
