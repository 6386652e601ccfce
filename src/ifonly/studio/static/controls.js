// Controls that follow each other: a number and its slider, two ends of a range, a probability and its words.
// Shared by the page and the notebook.
function followControls(root) {
  root.addEventListener("input", (event) => {
    const field = event.target;
    const feature = field.closest(".feature");
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
