package conduct_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/conduct"
)

// A component has the whole InitTime, however long those before it have taken to initialize it, and those after it to answer.
func TestInitTimeOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, 1, true, &conduct.Options{InitTime: 10 * time.Second})
		proxy, agent := c.components[0], c.components[1]
		c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		proxy.next()
		time.Sleep(9 * time.Second)
		proxy.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"initialize"}}`)
		agent.next()
		time.Sleep(9 * time.Second)
		agent.send(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1}}`)
		proxy.next()
		time.Sleep(9 * time.Second)
		proxy.send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
		c.client.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
		time.Sleep(time.Minute)
		c.client.send(`{"jsonrpc":"2.0","method":"x"}`)
		proxy.want(`{"jsonrpc":"2.0","method":"x"}`)
	})
}

// A request named initialize that goes to the client is an unknown request like others: a component cannot end the chain
// or spoil the initialize of its predecessor with it.
func TestInitializeUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, 1, true, &conduct.Options{InitTime: 10 * time.Second})
		proxy, agent := c.components[0], c.components[1]
		c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		proxy.next()
		proxy.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"initialize"}}`)
		agent.next()
		agent.send(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1}}`, `{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}`)
		proxy.next()
		proxy.want(`{"jsonrpc":"2.0","id":3,"method":"proxy/successor","params":{"method":"initialize","params":{}}}`)
		proxy.send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
		c.client.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
		time.Sleep(time.Minute) // the proxy never answers it
		proxy.send(`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}`)
		agent.want(`{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no"}}`)
	})
}

// A proxy may write the number of the version in another way.
func TestVersionOfOtherForm(t *testing.T) {
	c := start(t, 1, true, nil)
	proxy, agent := c.components[0], c.components[1]
	c.client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	proxy.next()
	proxy.send(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"initialize"}}`)
	agent.next()
	agent.send(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":1.0}}`)
	proxy.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1.0}}`)
	proxy.send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
	c.client.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
}
