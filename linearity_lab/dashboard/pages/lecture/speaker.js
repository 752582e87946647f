// Tools for speakers: a list of all keys, and notes in a second window that follows this one. The
// windows use a broadcast channel of this browser, without any server.
import { Stage } from "./stage.js";

const CHANNEL = "linearity-lab-lecture";
const mounted = new WeakMap();

class Speaker {
  constructor(root) {
    this.root = root;
    this.stage = new Stage();
    this.channel = new BroadcastChannel(CHANNEL);
    this.channel.onmessage = ({ data }) => {
      if (data === "where" && !this.props.follows) this.announce();
      else if (data.step && this.props.follows && data.step !== this.props.step) this.send(data.step);
    };
    this.heard = (event) => this.press(event);
    document.addEventListener("keydown", this.heard);
  }

  update(props, send) {
    const isNew = !this.props;
    Object.assign(this, { props, send });
    if (props.follows) {
      if (isNew) this.channel.postMessage("where");
      return;
    }
    if (isNew) this.build();
    this.announce();
    this.stage.show(props.presenting);
  }

  announce() { this.channel.postMessage({ step: this.props.step }); }

  build() {
    const { keys, title, close, notes, help } = this.props;
    const row = document.createElement("div");
    row.append(
      button(notes, help, "N", () => this.openNotes()),
      button("?", title, "", () => this.list.showModal()),
    );
    row.className = "row";
    this.list = document.createElement("dialog");
    this.list.setAttribute("aria-label", title);
    const table = document.createElement("table");
    for (const [names, what] of keys) {
      const line = table.insertRow();
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = names;
      line.append(head);
      line.insertCell().textContent = what;
    }
    const caption = table.createCaption();
    caption.textContent = title;
    this.list.append(table, button(close, close, "", () => this.list.close()));
    this.list.addEventListener("keydown", (event) => event.stopPropagation()); // keys do not change the step behind it
    this.root.replaceChildren(row, this.list);
  }

  openNotes() { window.open(`${location.pathname}?notes=1`, CHANNEL, "popup,width=720,height=820"); }

  press(event) {
    const at = event.composedPath()[0];
    const writes = at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName);
    if (this.props.follows || writes || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") this.list.showModal();
    else if (event.key.toLowerCase() === "n") this.openNotes();
  }

  close() {
    this.stage.close();
    this.channel.close();
    document.removeEventListener("keydown", this.heard);
  }
}

function button(text, help, key, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = help;
  if (text === "?") made.setAttribute("aria-label", help);
  if (key) {
    const named = document.createElement("kbd");
    named.textContent = key;
    made.append(" ", named);
  }
  made.addEventListener("click", act);
  return made;
}

export default function speaker({ parentElement, data, setTriggerValue }) {
  if (!mounted.has(parentElement)) mounted.set(parentElement, new Speaker(parentElement.querySelector(".speaker")));
  mounted.get(parentElement).update(data, (step) => setTriggerValue("step", step));
  return () => {
    mounted.get(parentElement)?.close();
    mounted.delete(parentElement);
  };
}
