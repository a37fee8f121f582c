create table nudge_x(a);
