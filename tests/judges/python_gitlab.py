"""python-gitlab works on an issue of the fake GitLab until it is a merge request."""

import os

import gitlab
from gitlab.exceptions import GitlabAuthenticationError, GitlabCreateError, GitlabError, GitlabGetError

url, token = os.environ["URL"], os.environ["TOKEN"]
client = gitlab.Gitlab(url, private_token=token, retry_transient_errors=False)
client.auth()
assert client.user.username == "coding-agent-bot"
assert client.version()[0].startswith("18.")
assert "api" in client.personal_access_tokens.get("self").scopes
try:
    gitlab.Gitlab(url, private_token="glpat-wrong").auth()
    raise AssertionError("a wrong token was accepted")
except GitlabAuthenticationError as error:
    assert error.error_message == "401 Unauthorized", error
assert gitlab.Gitlab(url, oauth_token=token).projects.get("acme/widgets").name == "widgets"

project = client.projects.get("acme/widgets")
assert client.projects.get(project.id).http_url_to_repo == f"{url}/acme/widgets.git"
assert project.permissions["project_access"]["access_level"] == 30
group = client.groups.get("acme")
assert [found.path_with_namespace for found in group.projects.list(get_all=True)] == ["acme/widgets"]
deep = group.projects.list(include_subgroups=True, get_all=True)
assert {found.path_with_namespace for found in deep} == {"acme/widgets", "acme/tools/hammer"}
assert len(group.issues.list(labels=["coding agent"], state="opened", get_all=True)) == 2
assert len(client.issues.list(scope="all", labels=["coding agent"], get_all=True)) == 2
assert client.issues.list(get_all=True) == []
(alice,) = client.users.list(username="alice")
assert project.members_all.get(alice.id).access_level == 40
assert [(found.username, found.access_level) for found in project.members_all.list(query="RIT", get_all=True)] == [
    ("rita", 30)
], "the highest of all her roles"
assert [found.access_level for found in project.members.list(query="rita", get_all=True)] == [20]
(greta,) = client.users.list(username="Greta")
assert project.members_all.get(greta.id).access_level == 10
try:
    project.members.get(greta.id)
    raise AssertionError("a member of the group is a member of the project")
except GitlabGetError as error:
    assert error.response_code == 404
try:
    project.members_all.get(1)
    raise AssertionError("a stranger is a member")
except GitlabGetError as error:
    assert error.response_code == 404

(found,) = project.issues.list(labels=["coding agent"], state="opened", get_all=True)
issue = project.issues.get(found.iid)
assert issue.title == "Greet the reader" and issue.author["username"] == "alice"
notes = issue.notes.list(sort="asc", order_by="created_at", get_all=True, per_page=100)
assert len(notes) == 300 and notes[-1].body == "remark 300"
assert issue.notes.list(get_all=False)[0].body == "remark 300", "the newest comes first"
assert len(issue.notes.list(iterator=True)) == 300
notes[0].awardemojis.create({"name": "eyes"})
assert [award.name for award in notes[0].awardemojis.list(get_all=True)] == ["eyes"]
assert issue.notes.get(notes[0].id).updated_at > notes[0].updated_at, "an emoji moves the time as an edit does"
try:
    notes[0].awardemojis.create({"name": "eyes"})
    raise AssertionError("an emoji was given twice")
except GitlabCreateError as error:
    assert error.response_code == 404 and "has already been taken" in error.error_message, error
gone = issue.notes.create({"body": "Never mind."})
gone.delete()
try:
    gone.awardemojis.create({"name": "thumbsup"})
    raise AssertionError("an emoji was put below a note that is gone")
except GitlabCreateError as error:
    assert (error.response_code, error.error_message) == (404, "404 Note Not Found"), error

label = {"name": "coding agent processing", "color": "#1d76db", "description": "Somebody works on it"}
project.labels.create(label)
try:
    project.labels.create(label)
    raise AssertionError("a label was made twice")
except GitlabCreateError as error:
    assert (error.response_code, error.error_message) == (409, "Label already exists"), error
assert project.labels.get("coding agent processing").color == "#1d76db"
project.issues.update(issue.iid, {"add_labels": "coding agent processing", "remove_labels": "coding agent"})
assert project.issues.get(issue.iid).labels == ["coding agent processing"]
assert [event.action for event in issue.resourcelabelevents.list(get_all=True)] == ["add", "add", "remove"]

note = issue.notes.create({"body": "I am at work."})
note.body = "I am done."
note.save()
assert issue.notes.get(note.id).body == "I am done."

project.branches.create({"branch": "feature/greet", "ref": "main"})
main, branch = project.branches.get("main"), project.branches.get("feature/greet")
assert branch.commit["id"] == main.commit["id"]
assert (main.protected, main.developers_can_push, main.can_push) == (True, False, False)
assert (branch.protected, branch.developers_can_push, branch.can_push) == (False, False, True)

(merge,) = project.mergerequests.list(source_branch="colour", state="opened", get_all=True)
merge = project.mergerequests.get(merge.iid)
failed, passed = merge.pipelines.list(get_all=True)
assert (failed.status, passed.status) == ("failed", "success"), "pipelines come newest first"
assert failed.sha == merge.sha and failed.id > passed.id
assert [job.name for job in project.pipelines.get(failed.id, lazy=True).jobs.list(scope="failed", get_all=True)] == ["test"]
assert project.pipelines.get(passed.id, lazy=True).jobs.list(scope="failed", get_all=True) == []
(job,) = project.pipelines.get(failed.id, lazy=True).jobs.list(get_all=True)
statuses = project.commits.get(merge.sha, lazy=True).statuses.list(get_all=True)
assert sorted(status.status for status in statuses) == ["failed", "failed", "success"]
assert job.id in [status.id for status in statuses], "jobs are statuses as well"
(external,) = [status for status in statuses if status.name == "license/cla"]
assert external.description == "The agreement is not signed yet." and not external.allow_failure
assert project.jobs.get(job.id, lazy=True).trace() == b"E   assert False"
assert merge.sha and merge.diff_refs["head_sha"] == merge.sha and not merge.has_conflicts
assert merge.changes_count == "1" and [commit.title for commit in merge.commits()] == ["Colour"]
(diff,) = merge.changes()["changes"]
assert diff["new_path"] == "COLOUR" and "+red" in diff["diff"]
(remark,) = merge.notes.list(get_all=True)
assert remark.attributes["type"] == "DiffNote"
remark.awardemojis.create({"name": "confused"})
assert [award.user["username"] for award in remark.awardemojis.list(get_all=True)] == ["coding-agent-bot"]
(discussion,) = merge.discussions.list(get_all=True)
assert discussion.attributes["notes"][0]["position"]["new_line"] == 1
discussion.notes.create({"body": "As you like."})
assert len(merge.discussions.get(discussion.id).attributes["notes"]) == 2
project.mergerequests.update(merge.iid, {"assignee_ids": [client.user.id]})
assert [found["username"] for found in project.mergerequests.get(merge.iid).assignees] == ["coding-agent-bot"]
project.mergerequests.update(merge.iid, {"reviewer_ids": [client.user.id]})
assert [found["username"] for found in project.mergerequests.get(merge.iid).reviewers] == ["coding-agent-bot"]
project.mergerequests.update(merge.iid, {"assignee_ids": [0]})
assert project.mergerequests.get(merge.iid).assignees == []

opened = project.mergerequests.create({
    "source_branch": "feature/greet", "target_branch": "main", "title": "Draft: Greet", "description": "Closes #1",
})
assert opened.draft and opened.state == "opened"
try:
    project.mergerequests.create({"source_branch": "feature/greet", "target_branch": "main", "title": "Again"})
    raise AssertionError("a merge request was opened twice")
except GitlabCreateError as error:
    assert error.response_code == 409 and "already exists" in str(error.error_message), error
opened.title = "Greet"
opened.save()
assert not project.mergerequests.get(opened.iid).draft
last = issue.notes.list(get_all=False)[0]
assert last.system and last.body == f"mentioned in merge request !{opened.iid}", last

issue.state_event = "close"
issue.labels = ["coding agent done"]
issue.save()
assert project.issues.get(issue.iid).state == "closed"
for wrong in (lambda: client.projects.get("acme/secret"), lambda: project.issues.get(99)):
    try:
        wrong()
        raise AssertionError("something was found that is not there")
    except GitlabError as error:
        assert error.response_code == 404, error
