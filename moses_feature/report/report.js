// What a reader can do with the maps and tables of a report.
(() => {
  const SHADES = ['#4477aa', '#ee6677', '#228833', '#b8860b', '#3399bb', '#aa3377', '#88ccaa',
    '#ff9955', '#6655cc', '#99aa33', '#cc6699', '#557788', '#bbbbbb'];
  const MOST_SHOWN = 30;

  function colours(map, by) {
    if (by === 'frequency') {
      return { 'marker.color': [map.names.map((_, rank) => -rank)],
        'marker.colorscale': 'Viridis', 'marker.showscale': false };
    }
    const groups = by === 'ending' ? map.endings : map.clusters;
    return { 'marker.color': [groups.map((group) => SHADES[group])] };
  }

  for (const holder of document.querySelectorAll('[data-map]')) {
    const map = JSON.parse(holder.querySelector('script[type="application/json"]').textContent);
    const plot = holder.querySelector('.js-plotly-plot');
    const told = holder.querySelector('output');
    const find = holder.querySelector('input');
    const colour = holder.querySelector('select');
    const list = (places) => places.map((place) => map.names[place]).join(' · ');

    const highlight = (places) => Plotly.restyle(plot, { selectedpoints: [places],
      'selected.marker.size': 10, 'selected.marker.opacity': 1, 'unselected.marker.opacity': 0.08 }, [0]);
    const paint = () => {
      Plotly.restyle(plot, colours(map, colour.value), [0]);
      if (colour.value === 'ending') told.textContent = 'Endings: ' + map.ending_names.join(', ') +
        '; grey: others.';
    };
    colour.addEventListener('change', paint);
    find.addEventListener('input', () => {
      const wanted = find.value.toLowerCase();
      if (!wanted) {
        highlight(null);
        told.textContent = '';
        return;
      }
      const places = [...map.names.keys()].filter(
        (place) => map.names[place].toLowerCase().includes(wanted));
      highlight(places);
      told.textContent = places.length + ' found' + (places.length ? ': ' : '') +
        list(places.slice(0, MOST_SHOWN)) + (places.length > MOST_SHOWN ? ' …' : '');
    });
    plot.on('plotly_click', (event) => {
      const place = event.points[0].pointNumber;
      highlight([place, ...map.neighbours[place]]);
      told.textContent = 'Nearest to ' + map.names[place] + ': ' + list(map.neighbours[place]);
    });
    paint();
    told.textContent = '';
  }

  for (const filter of document.querySelectorAll('input[data-filters]')) {
    filter.addEventListener('input', () => {
      const wanted = filter.value.toLowerCase();
      for (const name of filter.dataset.filters.split(' '))
        for (const row of document.querySelectorAll('#' + name + ' tbody tr'))
          row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
})();
