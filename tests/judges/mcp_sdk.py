"""The official SDK for Python drives `coding-agent mcp`, with the newest protocol and with the oldest that it knows."""

import asyncio
import os

import anyio
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client


def server(config):
    return StdioServerParameters(
        command=os.environ["PROGRAM"], args=["--config", config, "mcp"], env={"PATH": os.environ["PATH"]}
    )


async def judge(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {
        "evaluate_document",
        "evaluate_documents",
        "search_code",
        "ingest_code",
        "prune_code",
    }, tools
    assert tools["evaluate_document"].input_schema["required"] == ["content"]

    heard = []

    async def progress(done, total, message):
        heard.append((done, total, message))

    good = await client.call_tool("evaluate_document", {"content": "A good plan."}, progress_callback=progress)
    assert not good.is_error and good.structured_content["passed"] is True, good
    assert good.structured_content["score"] == 9 and good.structured_content["target_score"] == 8
    assert good.content[0].text.startswith("# Passed"), good.content
    assert heard and heard[-1][0] == heard[-1][1] == 1, heard

    strict = await client.call_tool("evaluate_document", {"content": "A good plan.", "target_score": 9.5})
    assert strict.structured_content["passed"] is False, strict

    two = await client.call_tool(
        "evaluate_documents",
        {"documents": [{"name": "one", "content": "A good plan."}, {"name": "two", "content": "A bad plan."}]},
    )
    both = two.structured_content
    assert both["passed"] is False and [each["passed"] for each in both["evaluations"]] == [True, False], both
    assert both["evaluations"][1]["blockers"][0]["claim"] == "It does nothing"

    for name, arguments, code in [
        ("evaluate_document", {}, -32602),
        ("evaluate_document", {"content": " "}, -32602),
        ("evaluate_document", {"content": "x", "target_score": 11}, -32602),
        ("evaluate_documents", {"documents": []}, -32602),
        ("evaluate_nothing", {}, -32602),
        ("evaluate_document", {"content": "An unreadable plan."}, -32603),
    ]:
        try:
            answer = await client.call_tool(name, arguments)
        except MCPError as error:
            assert error.error.code == code, (name, arguments, error.error)
            assert error.error.data["formatted"].startswith("# Evaluation failed"), error.error
        else:
            raise AssertionError((name, arguments, answer))


async def judge_index(client):
    project = os.environ["PROJECT"]
    arguments = {"query": "where are pooled connections closed", "project_path": project, "top_k": 1}
    found = await client.call_tool("search_code", arguments)
    chunk = found.structured_content["chunks"][0]
    assert (chunk["path"], chunk["span"], chunk["name"]) == ("net/sessions.py", "L1-L3", "close_adapter"), chunk
    assert "def close_adapter" in chunk["text"] and chunk["score"] > 0, chunk

    for narrowed in [{"path_prefix": "docs"}, {"filters": {"path_prefix": "docs"}}]:
        found_there = await client.call_tool("search_code", {**arguments, **narrowed})
        assert found_there.structured_content["chunks"] == [], found_there

    pruned = await client.call_tool("prune_code", {"project_path": project, "paths": ["net"]})
    assert pruned.structured_content == {"paths": ["net"], "files": 1}, pruned
    assert (await client.call_tool("search_code", arguments)).structured_content["chunks"] == []
    diff = {"modified": ["net/sessions.py"], "renamed": [{"from": "old.py", "to": "net/sessions.py"}]}
    taken = await client.call_tool("ingest_code", {"project_path": project, "diff": diff})
    expected = {"files": [{"path": "net/sessions.py", "places": 1}], "gone": ["old.py"], "parsed": 0}
    assert taken.structured_content == expected, taken
    assert (await client.call_tool("search_code", arguments)).structured_content == found.structured_content

    for name, wrong in [
        ("search_code", {"query": "x", "folder": "/"}),
        ("search_code", {"query": " ", "project_path": project}),
        ("search_code", {"query": "x" * 20_001, "project_path": project}),
        ("ingest_code", {"project_path": project}),
        ("prune_code", {"project_path": project, "paths": ["../elsewhere"]}),
    ]:
        try:
            answer = await client.call_tool(name, wrong)
        except MCPError as error:
            assert error.error.code == -32602, (name, wrong, error.error)
        else:
            raise AssertionError((name, wrong, answer))


async def main():
    async with Client(server(os.environ["CONFIG"])) as client:
        await judge(client)
        await judge_index(client)
        print("newest", client.session.protocol_version)
    async with stdio_client(server(os.environ["CONFIG"])) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            await judge(session)
            print("handshake", session.protocol_version)
    # The Rust side of this test sees the model's call end.
    async with Client(server(os.environ["HANGING"])) as client:
        with anyio.move_on_after(3) as scope:
            await client.call_tool("evaluate_document", {"content": "Any plan."})
        assert scope.cancelled_caught
        print("cancelled")
        tools = await client.list_tools()
        assert len(tools.tools) == 5
        await anyio.sleep(2)


asyncio.run(main())
