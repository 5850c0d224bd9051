// Chooses which sentences of a section are shown.
(() => {
  for (const controls of document.querySelectorAll('[data-changes]')) {
    const kind = controls.querySelector('select');
    const word = controls.querySelector('input');
    const told = controls.querySelector('output');
    const sentences = [...controls.parentElement.querySelectorAll('article')];
    const choose = () => {
      const wanted = word.value.toLowerCase();
      for (const sentence of sentences)
        sentence.hidden = (kind.value && sentence.dataset.kind !== kind.value) ||
          !sentence.textContent.toLowerCase().includes(wanted);
      told.textContent = sentences.filter((sentence) => !sentence.hidden).length + ' shown';
    };
    kind.addEventListener('change', choose);
    word.addEventListener('input', choose);
  }
})();
