// What a server cannot do: sliders that follow each other, the theme, undo by the history, and a word when it is gone.
"use strict";

const lost = () => { document.getElementById("lost").hidden = false; };

document.addEventListener("click", (event) => {
  const action = event.target.closest("[data-action]")?.dataset.action;
  if (action === "undo") history.back();
  if (action === "redo") history.forward();
  if (action === "print") window.print();
  if (action === "theme") {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("ifonly-theme", root.dataset.theme); } catch { /* only for this page, then */ }
  }
});

// Runs before htmx reads the form, because it listens on the way down.
followControls(document);

document.addEventListener("change", (event) => {
  event.target.closest("[data-submit-on-change]")?.requestSubmit();
}, true);

// What was typed while the page was still coming is searched for as well; htmx, which came first, listens by now.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("search");
  const typed = [...(form?.elements ?? [])].some((field) => field.defaultValue !== undefined && field.value !== field.defaultValue);
  if (typed) form.dispatchEvent(new Event("input", { bubbles: true }));
});

// An update may replace a button while it is pressed: the press then ends on its successor, and is a click all the same.
let pressed = null;
document.addEventListener("pointerdown", (event) => { pressed = event.target.closest("[data-watch] button"); });
document.addEventListener("pointerup", (event) => {
  if (pressed && !pressed.isConnected) event.target.closest("[data-watch] button")?.click();
  pressed = null;
});

// An answer is read out and brought into view when it comes; its stream is over, so nothing connects again.
document.addEventListener("done", (event) => {
  event.target.dataset.done = "1";
  const heading = event.target.querySelector?.("[data-focus]");
  if (heading) { heading.focus({ preventScroll: true }); heading.closest("section").scrollIntoView({ block: "start" }); }
}, true);
document.addEventListener("htmx:sse:before:connection", (event) => {
  if (event.target.dataset?.done) event.detail.connection.cancelled = true;
});

// Who is not known any more gets no page in the place of a fragment, but a word at the top.
document.addEventListener("htmx:before:response", (event) => {
  if (event.detail.ctx?.response?.status === 403) { lost(); event.preventDefault(); }
});
document.addEventListener("htmx:error", (event) => { if (event.detail.error?.name !== "AbortError") lost(); });
document.addEventListener("htmx:sse:error", lost);
document.addEventListener("htmx:sse:after:connection", () => { document.getElementById("lost").hidden = true; });
