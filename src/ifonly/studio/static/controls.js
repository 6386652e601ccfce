// Controls that follow each other: a number and its slider, two ends of a range, a probability and its words.
// Shared by the page and the notebook.

// What this person has edited or limited is marked as hers while she does it.
function markOwn(feature) {
  const value = feature.querySelector("[data-value]");
  const [low, high] = feature.querySelectorAll("[data-end]");
  const chosen = (name) => feature.querySelector(`[name^="${name}"]`)?.value ?? "";
  const limited = chosen("m") !== "" || chosen("st") !== "" || !["", "3"].includes(chosen("e"))
    || (low && (low.value !== low.min || high.value !== high.max))
    || [...feature.querySelectorAll("[name^=lv]")].some((box) => !box.checked);
  feature.querySelector("[data-mine]").hidden = !limited;
  feature.querySelector("[data-edited]").hidden = value.value === value.dataset.original;
}

function followControls(root) {
  root.addEventListener("click", (event) => {
    const all = event.target.closest?.("[data-all]");
    if (!all) return;
    const moves = [...root.querySelectorAll("[name^=m]")].filter((field) => field.matches(".feature select"));
    for (const field of moves) {
      field.value = all.dataset.all;
      markOwn(field.closest(".feature"));
    }
    moves[0]?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  root.addEventListener("input", (event) => {
    const field = event.target;
    const feature = field.closest(".feature");
    if (feature) setTimeout(() => markOwn(feature));  // once the controls have followed each other
    if (field.matches("[data-slider]")) {
      feature.querySelector("[data-value]").value = field.value;
    } else if (field.matches("[data-value]")) {
      const slider = feature.querySelector("[data-slider]");
      if (slider && field.value !== "") slider.value = field.value;
      const bars = feature.querySelectorAll(".picture [data-bar]");
      if (field.tagName === "SELECT") {
        const shift = field.options.length - bars.length;
        bars.forEach((bar, i) => bar.classList.toggle("is", i + shift === field.selectedIndex));
      }
    } else if (field.matches("[data-end]")) {
      const ends = feature.querySelectorAll("[data-end]");
      const [low, high] = ends;
      if (Number(low.value) > Number(high.value)) {
        if (field === low) low.value = high.value; else high.value = low.value;
      }
      feature.querySelector("[data-low]").textContent = low.value;
      feature.querySelector("[data-high]").textContent = high.value;
    } else if (field.matches("[data-probability-slider]")) {
      const hidden = field.parentElement.querySelector("input[name=p]");
      const shown = field.parentElement.querySelector("[data-probability]");
      hidden.value = Number(field.value) > 0 ? field.value : "";
      shown.textContent = hidden.value ? Number(hidden.value).toLocaleString(document.documentElement.lang || undefined) : shown.dataset.none;
    }
  }, true);
}
