"""Real data: what is fetched is what was pinned, held-back chats are refused, and scores mean what they say."""

from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile

import pytest

from benchmarks.real import beam, fetch, locomo, recall, scoring
from benchmarks.real.chats import Chat, DataMissingError, Message, Question

FILE = "data/one.json"


@pytest.fixture
def repository(tmp_path):
    """A git repository with one file, and how to pin it."""
    folder = tmp_path / "given" / "owner" / "one"
    target = folder / FILE
    target.parent.mkdir(parents=True)
    target.write_text("[1]")
    me = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*me, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    shown = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    pinned = {FILE: hashlib.sha256(b"[1]").hexdigest()}
    return fetch.Source("one", folder.as_uri(), shown.stdout.strip(), "none", pinned)


def test_pinned_files_come_from_a_git_directory_that_is_there(repository, tmp_path):
    assert fetch.fetch(repository, tmp_path / "into", tmp_path / "given") == 1
    assert (tmp_path / "into" / "one" / FILE).read_text() == "[1]"
    assert fetch.fetch(repository, tmp_path / "into", tmp_path / "given") == 0


def test_pinned_files_come_from_a_clone(repository, tmp_path):
    assert fetch.fetch(repository, tmp_path / "into") == 1
    assert (tmp_path / "into" / "one" / FILE).read_text() == "[1]"


def test_a_file_with_another_hash_is_refused(repository, tmp_path):
    changed = fetch.Source("one", repository.repository, repository.commit, "none", {FILE: "0" * 64})

    with pytest.raises(fetch.FetchError, match=r"has the hash .*, expected 0000"):
        fetch.fetch(changed, tmp_path / "into", tmp_path / "given")
    assert not (tmp_path / "into" / "one" / FILE).exists()


def test_a_repository_out_of_reach_says_what_to_do(tmp_path):
    absent = fetch.Source("one", (tmp_path / "nowhere").as_uri(), "0" * 40, "none", {FILE: "0" * 64})

    with pytest.raises(fetch.FetchError, match=r"cannot clone .* name it with --from"):
        fetch.fetch(absent, tmp_path / "into")
    with pytest.raises(fetch.FetchError, match=r"no git directory in .* holds commit 0000"):
        fetch.fetch(absent, tmp_path / "into", tmp_path)


def test_no_held_back_chat_is_pinned_or_read(tmp_path):
    pinned = next(source for source in fetch.sources() if source.name == "beam").files
    chats = {tuple(path.split("/")[1:3]) for path in pinned}

    assert chats == {(size, str(number)) for size, numbers in beam.OPEN.items() for number in numbers}
    for size, number in (("100K", 11), ("100K", 20), ("500K", 5), ("1M", 1), ("100K", 0)):
        with pytest.raises(DataMissingError, match="held back"):
            beam.load(size, number, tmp_path)


def test_a_beam_chat_is_read_with_its_sources_and_golds(tmp_path):
    folder = tmp_path / "beam" / "chats" / "100K" / "1"
    (folder / "probing_questions").mkdir(parents=True)
    turns = [
        {"role": "user", "id": 0, "content": "The port is 8080 ->-> 1,1"},
        {"role": "assistant", "id": 1, "content": "Noted."},
        {"role": "user", "id": 2, "content": "Now the port is 9090."},
    ]
    asked = {
        "knowledge_update": [
            {"question": "Which port?", "answer": "It is 9090.", "source_chat_ids": {"old": [0], "new": [2]}}
        ],
        "event_ordering": [{"question": "In order?", "answer": "1) 8080", "source_chat_ids": [0]}],
        "instruction_following": [
            {"question": "How?", "instruction_being_tested": "Always be brief.", "source_chat_ids": [2]}
        ],
    }
    (folder / "chat.json").write_text(json.dumps([{"turns": [turns[:2], turns[2:]]}]))
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))

    chat = beam.load("100K", 1, tmp_path)

    assert [message.content for message in chat.messages] == ["The port is 8080", "Noted.", "Now the port is 9090."]
    assert [(question.sources, question.golds) for question in chat.questions] == [
        ((0, 2), ("9090",)),
        ((0,), ()),
        ((2,), ()),
    ]
    assert chat.questions[2].instruction == "Always be brief."
    with pytest.raises(DataMissingError, match=r"python -m benchmarks\.real\.fetch"):
        beam.load("100K", 2, tmp_path)


def test_a_locomo_chat_is_read_with_its_sources_and_golds(tmp_path):
    read = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:00 pm on 2 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I drive a Prius."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a photo of a dog"},
        ],
        "session_2_date_time": "2:00 pm on 3 May, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "Hello"}],
        "qa": [{"question": "What does Ann drive?", "answer": "Prius", "evidence": ["D1:1; D9:9"], "category": 4}],
    }
    path = tmp_path / "locomo" / "data" / "locomo10.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/7.json", json.dumps(read))

    (chat,) = locomo.load_all(tmp_path)

    assert chat.name == "locomo-7"
    assert [row["role"] for row in chat.rows()] == ["user", "assistant", "assistant"]
    assert chat.messages[0].content == "[1:00 pm on 2 May, 2023]\nAnn: I drive a Prius."
    assert chat.messages[1].content == "Bob: Look! [shares a photo of a dog]"
    assert (chat.questions[0].sources, chat.questions[0].golds) == ((0,), ("Prius",))
    with pytest.raises(DataMissingError, match=r"python -m benchmarks\.real\.fetch"):
        locomo.load_all(tmp_path / "none")


@pytest.mark.parametrize("indexed", [True, False])
async def test_evidence_is_what_an_answer_quotes_of_the_sources(indexed):
    filler = [Message("assistant", f"Nothing of importance, number {number}. " * 30) for number in range(20)]
    source = Message("user", "By the way, the deployment deadline of the tracker is March 15.")
    asked = Question("one", "When is the tracker's deployment deadline?", "March 15", (20,), ("March 15",))
    absent = Question("one", "Who sings zarzuelas?", "Nobody", (3,), ())
    chat = Chat("made", (*filler, source, *filler), (asked, absent, Question("other", "What?", "", (1,), ())))

    figures = await recall.measure([chat], ["one"], indexed=indexed)

    assert (figures.evidence, figures.key, figures.any, figures.gold) == ([1, 0], [1, 0], [1, 0], [True])
    assert max(figures.tokens) <= recall.LIMIT


def test_gold_values_are_what_answer_and_sources_share():
    sources = ["The API answers in 250ms on port 8080.", "Done on March 29 with app.py, ticket AB12."]

    assert scoring.gold_values("250ms, 99 %, March 29, app.py, AB12, 250ms", sources) == (
        "250ms",
        "March 29",
        "app.py",
        "AB12",
    )
    assert scoring.places("8080, 18080, 8080x, 1.8080, 8080.", "8080") == [0, 28]


def test_a_value_is_near_where_half_of_the_words_are_near():
    question = scoring.telling_words("What is the average response time of the dashboard API?")
    far = "dashboard API response time" + " filler" * 60 + " 250ms"

    assert question == {"average", "response", "time", "dashboard", "api"}
    assert scoring.score("The dashboard API response time is 250ms", question, ["250ms"]) == scoring.Score(True, True)
    assert scoring.score(far, question, ["250ms"]) == scoring.Score(True, False)
    assert scoring.score("nothing", question, ["250ms"]) == scoring.Score(False, False)
    assert scoring.score("dashboard API response 250ms", question, ["250ms", "9"]) == scoring.Score(False, True)


def test_an_instruction_is_kept_where_most_of_its_words_stand_together():
    rule = scoring.telling_words("Always format code snippets with syntax highlighting")

    assert scoring.instruction_kept("Always format all code snippets with highlighting of syntax.", rule)
    assert scoring.instruction_kept("code " * 3 + "x " * 300 + "always format code snippets, highlighting", rule)
    assert not scoring.instruction_kept("always format code" + " x" * 300 + " snippets syntax highlighting", rule)


def test_the_summariser_keeps_frequent_sentences_in_their_order():
    text = (
        "Ports matter for the server. Birds sing in the morning sun. The server listens on ports. # A heading of it all"
    )

    assert scoring.extract(text, 12, lambda part: len(part.split())) == (
        "Ports matter for the server.\nThe server listens on ports."
    )
    assert scoring.extract("short", 12, len) == "short"
