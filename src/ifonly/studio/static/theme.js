// Before anything is drawn: the theme that was chosen, if one was.
try {
  const chosen = localStorage.getItem("ifonly-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* a browser without storage follows the system */ }
document.documentElement.classList.add("scripted");
