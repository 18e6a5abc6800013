"""PyGithub works on an issue of the fake GitHub until it is a pull request."""

import os

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from github import Auth, Github, GithubException, GithubIntegration

api = os.environ["API"]
client = Github(auth=Auth.Token(os.environ["TOKEN"]), base_url=api, retry=None, seconds_between_requests=0,
                seconds_between_writes=0)

assert client.get_user().login == "coding-agent-bot"
repository = client.get_repo("acme/widgets")
assert repository.default_branch == "main" and repository.permissions.push
levels = {"alice": "write", "dora": "write", "adam": "admin", "rita": "read", "trudy": "read", "mallory": "none"}
assert {login: repository.get_collaborator_permission(login) for login in levels} == levels
assert repository.get_collaborator_permission("Alice") == "write", "names are compared without regard to case"
try:
    repository.get_collaborator_permission("nobody")
    raise AssertionError("somebody was found who is not there")
except GithubException as error:
    assert error.status == 404 and error.data["message"] == "nobody is not a user", error
assert [found.full_name for found in client.get_user("acme").get_repos()] == ["acme/widgets"]

(issue,) = repository.get_issues(labels=["coding agent"])
assert issue.title == "Greet the reader" and issue.user.login == "alice" and issue.pull_request is None
assert {found.number for found in repository.get_issues()} == {1, 2}
found = client.search_issues('label:"coding agent" repo:acme/widgets is:issue state:open')
assert found.totalCount == 1 and found[0].number == 1

comments = list(issue.get_comments())
assert len(comments) == 300 and comments[-1].body == "remark 300"
assert comments[0].create_reaction("eyes").content == "eyes"
assert comments[0].create_reaction("eyes").id == comments[0].get_reactions()[0].id, "a reaction is there once"
comments[1].create_reaction("confused")
changed = issue.get_comment(comments[1].id)
assert (changed.reactions["confused"], changed.updated_at) == (1, comments[1].updated_at), "a reaction is no edit"
comments[2].edit("remark three")
assert issue.get_comment(comments[2].id).body == "remark three"
comments[3].delete()
try:
    comments[3].create_reaction("+1")
    raise AssertionError("a reaction was put below a comment that is gone")
except GithubException as error:
    assert error.status == 404, error

label = repository.create_label("coding agent processing", "1d76db", "Somebody works on it")
assert label.name == "coding agent processing"
try:
    repository.create_label("coding agent processing", "1d76db")
    raise AssertionError("a label was made twice")
except GithubException as error:
    assert error.status == 422 and error.data["errors"][0]["code"] == "already_exists", error
issue.add_to_labels("coding agent processing")
issue.remove_from_labels("coding agent")
try:
    issue.remove_from_labels("coding agent")
    raise AssertionError("a label was taken off twice")
except GithubException as error:
    assert error.status == 404 and error.data["message"] == "Label does not exist", error

comment = issue.create_comment("I am at work.")
comment.edit("I am done.")
assert issue.get_comment(comment.id).body == "I am done."

start = repository.get_branch("main").commit.sha
reference = repository.create_git_ref("refs/heads/greet", start)
try:
    repository.create_pull(base="main", head="greet", title="Greet")
    raise AssertionError("a pull request without commits was opened")
except GithubException as error:
    assert error.status == 422 and "No commits between" in str(error.data), error
reference.delete()

(pull,) = repository.get_pulls(state="open", head="acme:colour")
assert pull.mergeable and pull.commits == 1 and pull.changed_files == 1
assert [file.filename for file in pull.get_files()] == ["COLOUR"]
assert [written.body for written in pull.get_review_comments()] == ["Blue, please."]
commit = repository.get_commit(pull.head.sha)
test, lint = commit.get_check_runs()
assert (test.name, test.status, test.conclusion) == ("test", "completed", "failure")
assert (lint.name, lint.status, lint.conclusion) == ("lint", "in_progress", None)
assert test.details_url.endswith(f"/job/{test.id}") and test.app.slug == "github-actions"
combined = commit.get_combined_status()
assert combined.state == "failure"
assert [(told.context, told.state, told.description) for told in combined.statuses] == [
    ("ci/legacy", "failure", "3 tests failed"),
], "the newest status of a context counts"
reviews = [(review.body, review.state) for review in pull.get_reviews()]
assert reviews == [("", "COMMENTED"), ("Nearly.", "CHANGES_REQUESTED"), ("Fine.", "APPROVED")], reviews
(written,) = pull.get_review_comments()
assert written.create_reaction("+1").content == "+1" and written.reactions["+1"] == 0
written.edit("Green, please.")
written = pull.get_review_comment(written.id)
assert (written.body, written.reactions["+1"]) == ("Green, please.", 1)
try:
    issue.get_comment(written.id)
    raise AssertionError("a remark on a line was found among the comments")
except GithubException as error:
    assert error.status == 404, error
reply = pull.create_review_comment_reply(written.id, "As you like.")
assert (reply.in_reply_to_id, reply.path, reply.user.login) == (written.id, written.path, "coding-agent-bot")
for gone in (reply.id, 0):
    try:
        pull.create_review_comment_reply(gone, "And more.")
        raise AssertionError("a reply to what begins no thread was taken")
    except GithubException as error:
        assert error.status == 404, error
pull.convert_to_draft()
assert pull.draft and repository.get_pull(pull.number).draft
pull.mark_ready_for_review()
assert not pull.draft and not repository.get_pull(pull.number).draft
pull.create_review_request(reviewers=["dora"])
assert [user.login for user in repository.get_pull(pull.number).requested_reviewers] == ["dora"]
try:
    pull.create_review_request(reviewers=["dora", "nobody"])
    raise AssertionError("a review was asked of nobody")
except GithubException as error:
    assert error.status == 422 and "not a collaborator" in error.data["message"], error
issue.add_to_assignees("nobody")
assert repository.get_issue(1).assignees == [], "whoever cannot be assigned is left out without a word"
issue.add_to_assignees("coding-agent-bot")
assert [user.login for user in repository.get_issue(1).assignees] == ["coding-agent-bot"]
issue.remove_from_assignees("coding-agent-bot")
assert repository.get_issue(1).assignees == []
pull.edit(title="Colour it", body="Closes #1")
assert repository.get_pull(pull.number).title == "Colour it"
try:
    repository.create_pull(base="main", head="colour", title="Again")
    raise AssertionError("a pull request was opened twice")
except GithubException as error:
    assert error.status == 422 and "already exists" in str(error.data), error

issue.set_labels("coding agent done")
issue.edit(state="closed")
kinds = [event.event for event in issue.get_timeline()]
assert kinds[0] == "labeled" and "cross-referenced" in kinds and kinds[-1] == "closed", kinds
assert issue.get_events()[0].event == "labeled"

key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
app = GithubIntegration(auth=Auth.AppAuth(int(os.environ["APP"]), pem.decode()), base_url=api)
installation = app.get_repo_installation("acme", "widgets")
token = app.get_access_token(installation.id).token
bot = Github(auth=Auth.Token(token), base_url=api, retry=None)
said = bot.get_repo("acme/widgets").get_issue(1).create_comment("As an App.")
assert said.user.login == "coding-agent[bot]" and said.user.type == "Bot"
