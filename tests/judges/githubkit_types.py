"""githubkit reads the fake GitHub's answers into types made from GitHub's published description.

A field that is missing or of a wrong type raises an error.
"""

import os

from githubkit import GitHub
from githubkit.exception import RequestFailed
from pydantic import ValidationError

client = GitHub(os.environ["TOKEN"], base_url=os.environ["API"], auto_retry=False, http_cache=False)
rest, place = client.rest, ("acme", "widgets")
faults = []


def fits(answer):
    """Returns what an answer says, and notes where it does not fit the description."""
    try:
        return answer.parsed_data
    except ValidationError as error:
        faults.append(f"{answer.raw_request.method} {answer.url}: {error}")
        return None



fits(rest.users.get_authenticated())
fits(rest.users.get_by_username("alice"))
fits(rest.repos.get(*place))
fits(rest.repos.list_for_user("acme"))
fits(rest.repos.list_for_org("acme"))
fits(rest.repos.list_branches(*place))
assert not fits(rest.repos.get_branch(*place, "main")).protected
assert fits(rest.repos.get_branch(*place, "colour")).protected
(rule,) = fits(rest.repos.get_branch_rules(*place, "colour"))
assert rule.type == "pull_request"
assert fits(rest.repos.get_collaborator_permission_level(*place, "alice")).permission == "write"
fits(rest.git.get_ref(*place, "heads/main"))

issues = fits(rest.issues.list_for_repo(*place, state="all"))
assert len(issues) == 3, issues
fits(rest.search.issues_and_pull_requests(q="repo:acme/widgets is:issue"))
assert fits(rest.issues.get(*place, 1)).locked
assert fits(rest.issues.get(*place, 2)).pull_request
fits(rest.issues.list_assignees(*place))
fits(rest.issues.list_comments(*place, 1))
fits(rest.issues.list_labels_for_repo(*place))
fits(rest.issues.list_labels_on_issue(*place, 1))
for number in (1, 2, 3):
    fits(rest.issues.list_events_for_timeline(*place, number))
for number in (1, 2):  # not the closed one: the description of this list has no "closed"
    fits(rest.issues.list_events(*place, number))

label = {"name": "coding agent done", "color": "0e8a16", "description": "Finished"}
fits(rest.issues.create_label(*place, data=label))
fits(rest.issues.get_label(*place, "coding agent"))
fits(rest.issues.add_labels(*place, 1, data={"labels": ["coding agent done"]}))
fits(rest.issues.set_labels(*place, 1, data={"labels": ["coding agent"]}))
fits(rest.issues.remove_label(*place, 1, "coding agent"))
rest.issues.remove_all_labels(*place, 1)
comment = fits(rest.issues.create_comment(*place, 1, data={"body": "Hello"}))
fits(rest.issues.update_comment(*place, comment.id, data={"body": "Hello again"}))
fits(rest.issues.get_comment(*place, comment.id))
fits(rest.reactions.create_for_issue_comment(*place, comment.id, data={"content": "+1"}))
fits(rest.reactions.list_for_issue_comment(*place, comment.id))
rest.issues.delete_comment(*place, comment.id)
fits(rest.issues.add_assignees(*place, 1, data={"assignees": ["coding-agent-bot"]}))
fits(rest.issues.remove_assignees(*place, 1, data={"assignees": ["coding-agent-bot"]}))
fits(rest.issues.create(*place, data={"title": "Another", "labels": ["coding agent"]}))
fits(rest.issues.update(*place, 1, data={"state": "closed"}))

fits(rest.pulls.list(*place, state="all"))
assert fits(rest.pulls.get(*place, 2)).mergeable
assert fits(rest.pulls.get(*place, 3)).head.repo.fork
fits(rest.pulls.list_files(*place, 2))
fits(rest.pulls.list_commits(*place, 2))
reviews = fits(rest.pulls.list_reviews(*place, 2))
(written,) = fits(rest.pulls.list_review_comments(*place, 2))
fits(rest.reactions.create_for_pull_request_review_comment(*place, written.id, data={"content": "eyes"}))
fits(rest.reactions.list_for_pull_request_review_comment(*place, written.id))
fits(rest.pulls.update_review_comment(*place, written.id, data={"body": "Green, please."}))
assert fits(rest.pulls.get_review_comment(*place, written.id)).reactions.eyes == 1
fits(rest.pulls.list_comments_for_review(*place, 2, reviews[0].id))
fits(rest.pulls.update(*place, 2, data={"title": "Colour it"}))
sha = fits(rest.git.get_ref(*place, "heads/colour")).object_.sha
assert fits(rest.checks.list_for_ref(*place, sha)).total_count == 2
assert fits(rest.repos.get_combined_status_for_ref(*place, sha)).state == "failure"
fits(rest.git.create_ref(*place, data={"ref": "refs/heads/other", "sha": sha}))
fits(rest.pulls.create(*place, data={"title": "Other", "head": "other", "base": "main", "draft": True}))

for wrong in ({"title": "x", "head": "nowhere", "base": "main"}, {"title": "x", "head": "other", "base": "main"}):
    try:
        rest.pulls.create(*place, data=wrong)
        raise AssertionError(f"{wrong} was accepted")
    except RequestFailed as error:
        assert error.response.status_code == 422, error

assert not faults, "\n".join(faults)
