// One question in a notebook cell: the same fragments as in the studio, over the notebook's own connection.
const SENT_APART = 60; // milliseconds between two looks at an edit

function render({ model, el }) {
  const host = document.createElement("div");
  el.appendChild(host);
  const root = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = model.get("style_text");
  const box = document.createElement("div");
  box.className = "body";
  root.append(style, box);
  const draw = () => { box.innerHTML = model.get("html"); };
  const query = () => new URLSearchParams(new FormData(root.querySelector("#question"))).toString();
  const put = (selector, html) => {
    const place = root.querySelector(selector);
    if (place) place.innerHTML = html;
  };
  followControls(root);
  let waiting = 0;
  root.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => model.send({ kind: "predict", query: query() }), SENT_APART);
  });
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    model.send({ kind: "ask", query: query() });
  });
  root.addEventListener("click", (event) => {
    const pressed = event.target.closest("a, button");
    const address = pressed?.getAttribute("href") ?? "";
    if (pressed?.getAttribute("hx-post")?.startsWith("cancel")) model.send({ kind: "cancel" });
    if (!address) return;
    event.preventDefault();
    const [kind, rest] = address.split("?");
    if (kind === "row" || kind === "export") model.send({ kind: kind === "row" ? "open" : "export", query: rest ?? "" });
  });
  model.on("change:html", draw);
  model.on("msg:custom", (message) => {
    if (message.kind === "now") put("#now", message.html);
    if (message.kind === "answer") put("#answer", `<section class="card watch">${message.html}</section>`);
    if (message.kind === "file") {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([message.text], { type: message.media }));
      link.download = message.name;
      link.click();
      URL.revokeObjectURL(link.href);
    }
  });
  draw();
}

export default { render };
